//! The dashboard: pages that show what Tenure does and why, and let an operator act.
//!
//! The way of a request: `entry` checks who asks and takes it apart; `pages` has a table of paths, each with a function that
//! asks the engine and draws one page; `layout` draws what all pages have around them. Each page is a file in `pages/`, with
//! its sentences, what it shows and the actions on it. `show/` has what several pages draw: states, times, bars, charts.
//!
//! Every action is one call of the public API, made by the same readers that read the API's bodies, so that a form is
//! refused with the sentences of the API. Nothing here knows a store, decides a rule, keeps state, or does unbounded work: a
//! list is a page of the API's list and says where it stopped. Nothing is a script or a style within a page, whatever a job
//! is named: everything is text, and the policy in the headers forbids the rest.

mod acting;
mod assets;
mod attention;
mod command;
mod entry;
mod filter;
mod history;
mod language;
mod layout;
mod live;
mod look_through;
mod pages;
mod pairs;
mod payloads;
mod session;
mod show;
mod visit;

pub use entry::Dashboard;
pub use history::{History, Minute};
