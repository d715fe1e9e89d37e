//! The store: survival, refusals, access, and ways to end.

pub mod backups;
mod blanks;
mod calls;
mod clock;
mod closing;
mod crashes;
mod deposed;
mod disk;
mod events;
mod flips;
mod folder;
mod gone;
mod journal;
mod kept;
mod kill;
mod moved;
mod orphans;
mod recovery;
mod room;
mod sealed;
mod snapshots;
mod unreadable;
mod waits;
