//! The store: what survives, what is refused, who may read it, and how it ends.

mod calls;
mod crashes;
mod disk;
mod folder;
mod gone;
mod kill;
mod waits;
