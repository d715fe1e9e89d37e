//! The wall clock of another process, shifted by a test while that process runs. Linux only: it needs `LD_PRELOAD`.
//!
//! It never touches the clock of the machine, nor that of a process that was started without [`ShiftedClock::envs`].

use std::ffi::OsString;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

use tenure_core::time::Span;

use crate::TempDir;

const SOURCE: &str = include_str!("clock.c");

/// A shift of zero or more of the wall clock, for all processes that are started with its
/// [`envs`](Self::envs).
#[derive(Debug)]
pub struct ShiftedClock {
    dir: TempDir,
    /// Starts at 0; the process sees each change at once.
    shift_ns: Mutex<i64>,
}

impl ShiftedClock {
    /// A clock without a shift. Panics if the C compiler is missing, and says what to install.
    pub fn new() -> Self {
        let clock = ShiftedClock { dir: TempDir::new(), shift_ns: Mutex::new(0) };
        let source = clock.dir.join("clock.c");
        std::fs::write(&source, SOURCE).expect("the temporary folder takes a file");
        clock.write(0);
        let mut compile = Command::new("cc");
        compile.args(["-shared", "-fPIC", "-O1", "-o"]).arg(clock.library()).arg(&source);
        match compile.output() {
            Ok(made) if made.status.success() => clock,
            Ok(made) => panic!("cc refused {SOURCE}:\n{}", String::from_utf8_lossy(&made.stderr)),
            Err(why) => panic!(
                "there is no C compiler \"cc\" on this machine ({why}): install one (apt-get \
                 install gcc libc6-dev)"
            ),
        }
    }

    /// The environment variables that make this the wall clock of a process.
    pub fn envs(&self) -> [(&'static str, OsString); 2] {
        [
            ("LD_PRELOAD", self.library().into_os_string()),
            ("TENURE_SHIFTED_CLOCK", self.shift_file().into_os_string()),
        ]
    }

    /// The wall clock leaps ahead.
    pub fn leap(&self, span: Span) {
        let mut shift = self.shift_ns.lock().expect("nobody panics with it");
        *shift += i64::try_from(span.us() * 1_000).expect("a leap is no century");
        self.write(*shift);
    }

    fn library(&self) -> PathBuf {
        self.dir.join("clock.so")
    }

    fn shift_file(&self) -> PathBuf {
        self.dir.join("shift")
    }

    fn write(&self, ns: i64) {
        let mut options = std::fs::File::options();
        options.write(true).create(true).truncate(false);
        let file = options.open(self.shift_file()).expect("the temporary folder takes a file");
        // One write of eight bytes: the process never reads half of a shift.
        file.write_all_at(&ns.to_ne_bytes(), 0).expect("the temporary folder has room");
    }
}

impl Default for ShiftedClock {
    fn default() -> Self {
        ShiftedClock::new()
    }
}
