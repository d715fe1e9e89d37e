//! Calendar of schedules: cron expressions, zones, intervals, and the plans that are made of them.
//!
//! The state machine knows no calendar. The process that handles a call or ticks a namespace computes moments with this
//! crate and sends them along; so do a preview and the command line. Nothing here reads a clock, does I/O or remembers
//! a schedule. The zone data is that of the release, never the machine's, so that two processes of one release always
//! agree.
//!
//! ```
//! use tenure_calendar::{Cron, Zone};
//!
//! let cron = Cron::parse("0 9 * * 1-5").unwrap();
//! let berlin = Zone::parse("Europe/Berlin").unwrap();
//! // Friday, nine o'clock and a bit; the next moment is on Monday.
//! let friday = "2026-11-27T09:30:00+01:00".parse().unwrap();
//! let monday = "2026-11-30T09:00:00+01:00".parse().unwrap();
//! assert_eq!(cron.next_after(&berlin, friday), Some(monday));
//! ```

mod civil;
mod cron;
mod local;
mod plan;
mod preview;
mod timing;
mod zone;

pub use cron::{Cron, CronError, CronFault, CronField};
pub use local::{LocalTime, Toward};
pub use plan::Planned;
pub use preview::Preview;
pub use timing::Timing;
pub use zone::{ClockReading, WallClock, Zone, ZoneUnknown, zone_data};
