//! Writes a line for a command that works on the folder of a store without a server: a copy, a restore.

use std::io;
use std::path::Path;

use tenure_core::bounds::TRAIL_BYTES_DEFAULT;
use tenure_core::trail::{TrailLine, TrailVia};

use super::files::TrailFiles;
use super::writer::TrailWriter;
use super::{TRAIL_FOLDER, TrailOptions, TrailPlace};

/// In the place of the address of a server, and of a caller whose name is unknown.
const OFFLINE: &str = "offline";

/// Writes a line into the trail in the folder of a store, and syncs it: this process is about to end. `user`: the user
/// who runs the command, if it has a name. The caller of this function has the folder locked.
///
/// # Errors
/// The line is not in the trail.
pub fn write_offline(store: &Path, user: Option<String>, line: TrailLine) -> io::Result<()> {
    let options = TrailOptions {
        place: TrailPlace::Folder(store.join(TRAIL_FOLDER)),
        is_required: false,
        most_bytes: TRAIL_BYTES_DEFAULT,
        server: OFFLINE.to_owned(),
    };
    let caller = user.unwrap_or_else(|| OFFLINE.to_owned());
    let mut line = TrailLine { caller: Some(caller), via: Some(TrailVia::Command), ..line };
    let mut writer = TrailWriter::new(&options.place);
    writer.put(&options, &mut line)?;
    match writer.files().and_then(TrailFiles::unsynced) {
        Some(file) => file.sync_data(),
        None => Ok(()),
    }
}
