//! Parts that several pages share: states, times, pictures, buttons.

mod bars;
mod bidi;
mod charts;
mod ids;
mod parts;
mod payload;
mod states;
mod strip;
mod times;

pub(crate) use bars::{BarPart, bar, place_in_line, squares};
pub(crate) use bidi::without_turns;
pub(crate) use charts::{bars_of_two, lines_of_two};
pub(crate) use ids::{id, id_link, in_parts};
pub(crate) use parts::{
    Confirm, ask_link, ask_to_delete, ask_to_destroy, button, caller, command, commands, done,
    empty, fact, form, number_cell, pager, scroll_table,
};
pub(crate) use payload::{payload_line, payload_row};
pub(crate) use states::{pill, state, word};
pub(crate) use strip::strip;
pub(crate) use times::{ago, at, clock, for_people};
