//! The name of this machine's zone, as its other programs know it: the variable TZ, otherwise `/etc/localtime`.
//!
//! Only the name comes from the machine. The clock times of that zone come from the data of the release, as everywhere
//! in Tenure (docs/decisions).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use tenure_calendar::Zone;

/// Why the zone is unknown, as the end of a sentence.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct UnknownZone(String);

/// This machine's zone.
///
/// # Errors
/// TZ or `/etc/localtime` names no zone of the IANA database, as a POSIX rule (`<+08>-8`) or a file of one's own does.
pub fn of_this_machine() -> Result<Zone, UnknownZone> {
    zone(std::env::var_os("TZ").as_deref(), Path::new("/etc"))
}

fn zone(tz: Option<&OsStr>, etc: &Path) -> Result<Zone, UnknownZone> {
    let Some(tz) = tz else { return of_files(etc) };
    let said = tz.to_string_lossy();
    let said = said.strip_prefix(':').unwrap_or(&said);
    match name_in(Path::new(said)).as_deref().unwrap_or(said) {
        // An empty TZ is UTC for every program.
        "" => Ok(Zone::utc()),
        name => Zone::parse(name)
            .map_err(|_| UnknownZone("TZ names no zone of the IANA database".to_owned())),
    }
}

fn of_files(etc: &Path) -> Result<Zone, UnknownZone> {
    let localtime = etc.join("localtime");
    if localtime.symlink_metadata().is_err() {
        // Without the file every program takes UTC.
        return Ok(Zone::utc());
    }
    let linked = std::fs::read_link(&localtime).ok().and_then(|target| name_in(&target));
    let resolved = || localtime.canonicalize().ok().and_then(|file| name_in(&file));
    // Where it is a copy, `/etc/timezone` has its name.
    let written =
        || std::fs::read_to_string(etc.join("timezone")).ok().map(|name| name.trim().to_owned());
    let names = [linked, resolved(), written()];
    names.into_iter().flatten().find_map(|name| Zone::parse(&name).ok()).ok_or_else(|| {
        UnknownZone(format!("{} names no zone of the IANA database", localtime.display()))
    })
}

/// The name of a zone by the path of its file: what follows `zoneinfo`.
fn name_in(path: &Path) -> Option<String> {
    let mut parts =
        path.components().map(|part| part.as_os_str()).skip_while(|part| *part != "zoneinfo");
    parts.next()?;
    let name: PathBuf = parts.filter(|part| *part != "posix" && *part != "right").collect();
    name.to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_tz(tz: &str) -> Result<String, UnknownZone> {
        zone(Some(OsStr::new(tz)), Path::new("/no/such/folder")).map(|zone| zone.name().to_owned())
    }

    #[test]
    fn tz_goes_before_the_files_and_names_a_zone() {
        for (tz, name) in [
            ("", "UTC"),
            ("UTC", "UTC"),
            ("Asia/Shanghai", "Asia/Shanghai"),
            (":Europe/Berlin", "Europe/Berlin"),
            (":/usr/share/zoneinfo/Europe/Berlin", "Europe/Berlin"),
            ("/usr/share/zoneinfo/posix/Europe/Berlin", "Europe/Berlin"),
        ] {
            assert_eq!(by_tz(tz).as_deref(), Ok(name), "{tz}");
        }
        for tz in ["<+08>-8", "CST-8", "/my/own/zone", "Nowhere/At_All"] {
            assert!(by_tz(tz).unwrap_err().to_string().starts_with("TZ names no zone"), "{tz}");
        }
    }

    #[test]
    fn without_tz_the_file_says_it() {
        let etc = tempfile::tempdir().unwrap();
        let of_files = || zone(None, etc.path()).map(|zone| zone.name().to_owned());
        assert_eq!(of_files().as_deref(), Ok("UTC"));
        let localtime = etc.path().join("localtime");
        std::os::unix::fs::symlink("../usr/share/zoneinfo/Asia/Tokyo", &localtime).unwrap();
        assert_eq!(of_files().as_deref(), Ok("Asia/Tokyo"));
        std::fs::remove_file(&localtime).unwrap();
        std::fs::write(&localtime, "TZif").unwrap();
        assert!(of_files().unwrap_err().to_string().contains("localtime names no zone"));
        std::fs::write(etc.path().join("timezone"), "Europe/Berlin\n").unwrap();
        assert_eq!(of_files().as_deref(), Ok("Europe/Berlin"));
    }
}
