//! The lines of copies and restores in the trails of the folders that they open.

use nix::unistd::{Uid, User};
use tenure_core::trail::TrailLine;
use tenure_server::{TRAIL_FOLDER, write_offline};

use super::stores::NamedStore;
use crate::output;

/// Writes that this operation was done, or tried, into the trail of each of these stores that is a folder. `places`: what
/// was copied `from` where `to` where. The folders are still locked, so that no server writes there. A trail that cannot be
/// written undoes nothing: the command says so.
pub fn record(stores: &[&NamedStore], op: &str, places: &[(&str, &str)], is_done: bool) {
    let (status, code) =
        if is_done { (Some(200), None) } else { (None, Some("failed".to_owned())) };
    for folder in stores.iter().filter_map(|store| store.folder()) {
        let targets = places.iter().map(|(kind, place)| format!("{kind}:{place}"));
        let line = TrailLine { status, code: code.clone(), ..TrailLine::of(op).about(targets) };
        if let Err(why) = write_offline(folder, user(), line) {
            let trail = folder.join(TRAIL_FOLDER);
            output::tell(&format!("the trail in '{}' has no line of this: {why}", trail.display()));
        }
    }
}

/// The user who runs this process.
fn user() -> Option<String> {
    User::from_uid(Uid::current()).ok()?.map(|user| user.name)
}
