//! The trail of a server: where its lines go, and the lines about files that were read again.

use std::path::Path;

use tenure_core::trail::TrailLine;
use tenure_engine::Location;
use tenure_server::{TRAIL_FOLDER, Trail, TrailOptions, TrailPlace};

use super::renewal::Reread;
use super::store::ServePlace;
use crate::args::serve::ServeArgs;
use crate::exit::Failure;

/// Where the lines of this server go; `None`: nowhere.
///
/// # Errors
/// Lines are required, and there is no place for them.
pub fn place(args: &ServeArgs, store: &ServePlace) -> Result<Option<TrailPlace>, Failure> {
    let place = match (&args.trail, store) {
        _ if args.trail_bytes == 0 => None,
        (Some(path), _) if path == Path::new("-") => Some(TrailPlace::Stderr),
        (Some(path), _) => Some(TrailPlace::Folder(path.clone())),
        (None, ServePlace::Own(Location::Folder(path))) => {
            Some(TrailPlace::Folder(path.join(TRAIL_FOLDER)))
        }
        // Memory is gone with the process, and a folder that nobody named may lie anywhere.
        (None, ServePlace::Own(_) | ServePlace::Moved(_) | ServePlace::Shared(_)) => None,
    };
    if args.trail_required && place.is_none() {
        return Err(Failure::usage("--trail-required needs a trail, and this server keeps none")
            .hint("name its folder: --trail DIR; and give it space, if --trail-bytes is 0"));
    }
    Ok(place)
}

/// Opens it. `server`: the address of this server, for its lines.
pub fn open(place: Option<TrailPlace>, args: &ServeArgs, server: String) -> Trail {
    let Some(place) = place else { return Trail::default() };
    let (is_required, most_bytes) = (args.trail_required, args.trail_bytes);
    Trail::open(TrailOptions { place, is_required, most_bytes, server })
}

/// The line about a file that was read again.
pub fn line_of(reread: Reread) -> TrailLine {
    let code = (!reread.is_used).then(|| "unusable".to_owned());
    let line = TrailLine::of(reread.op).about([format!("file:{}", reread.file)]);
    TrailLine { code, ..line }
}
