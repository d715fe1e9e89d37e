//! Copies between folders and Redis: nothing is lost on the way, nothing is granted twice, and what is
//! broken off is taken up.

mod away;
mod broken_off;
mod filled;
mod flows;
mod keys;
mod kin;
mod leases;
mod refused;
mod round_trip;
mod schedules;
mod stores;
mod to_redis;
mod untold;
mod world;
