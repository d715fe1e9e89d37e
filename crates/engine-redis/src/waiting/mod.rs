//! Who waits in this process, and what wakes them: signals that other processes publish, the moments
//! at which something is due, and the ends of their own waits.
//!
//! A signal is a hint: whoever is woken asks again, and the library decides. What comes as a parcel was granted there.
//! Nothing is granted here.

mod alarm;
mod end_call;
mod flow_call;
mod given;
mod lease_call;
mod leaving;
mod parcels;
mod permissions;
mod result_call;
mod sight;
mod signals;
mod space;
mod taking;
mod testing;
mod timer;
mod wait_end;

pub(crate) use permissions::{DeniedChannel, keep_looking};
pub(crate) use signals::Signals;
pub(crate) use space::Space;
pub(crate) use taking::settle_and_lease;
pub(crate) use testing::{set_clock, settle_all};
pub(crate) use timer::{keep_time, tick};
pub(crate) use wait_end::WaitEnd;
