//! The one suite that every engine passes: each rule of the contract as a sentence that can fail.
//!
//! An engine's crate implements [`Factory`] and writes `tenure_conformance::conformance_tests!(factory)`
//! in a test; every sentence becomes a test of its own, so a broken rule is named by `cargo test`.
//! A sentence knows only the [`Engine`](tenure_engine_api::Engine) trait and the contract: it must never
//! look into an engine, sleep a fixed time, or assert what the contract leaves open.

mod bench;
mod calls;
mod carried;
mod cases;
mod clock;
mod run;
mod words;

mod all_or_nothing;
mod at_once;
mod audit;
mod cancel;
mod catch_up;
mod crowd;
mod debounce;
mod delete_job;
mod events;
mod expiry;
mod explain;
mod extend;
mod failures;
mod flow_bulk;
mod flow_cancels;
mod flow_follow_ups;
mod flow_histories;
mod flow_keeping;
mod flow_names;
mod flow_portions;
mod flow_refusals;
mod flow_reopen;
mod flow_retries;
mod flow_views;
mod flows;
mod force_lease;
mod gaps;
mod gauge_failures;
mod gauges;
mod groups;
mod lease;
mod limits;
mod lists;
mod locks;
mod lost;
mod many;
mod needs_alone;
mod order;
mod outcomes;
mod patch;
mod pauses;
mod payload_needs;
mod place;
mod pools;
mod progress;
mod push;
mod quarantines;
mod queues;
mod rates;
mod reopen;
mod repeats;
mod replacing;
mod reservation;
mod resources;
mod results;
mod retention;
mod retry;
mod run_now;
mod schedule_changes;
mod schedule_sets;
mod schedule_stats;
mod schedules;
mod settle;
mod settle_and_lease;
mod sync;
mod templates;
mod time;
mod timeout;
mod traces;
mod unique;
mod verdicts;
mod waiting;

pub use bench::{Bench, Capabilities, Factory, Store, Task, TestClock};
pub use carried::{carried, check_all_and_carried};
pub use cases::all;
pub use clock::MovedClock;
pub use run::{Case, Running, check, check_all};
