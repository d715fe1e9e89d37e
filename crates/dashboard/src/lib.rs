//! The dashboard: pages that show the work of Tenure and its reasons, and let an operator act.
//!
//! The path of a request: `entry` checks the caller and takes the request apart; `pages` has a table of paths, each
//! with a function that calls the engine and draws one page; `layout` draws the frame of all pages. Each page is a file
//! in `pages/`, with its sentences, its content and its actions. `show/` draws parts that several pages share: states,
//! times, bars, charts.
//!
//! Every action is one call of the public API, made by the same readers that read the API's bodies, so that a form is
//! refused with the sentences of the API. Nothing here knows a store, decides a rule, keeps state, or does unbounded
//! work: a list is a page of the API's list and says where it stopped. A page contains no script and no style, whatever
//! the name of a job: everything is text, and the policy in the headers forbids the rest.

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
