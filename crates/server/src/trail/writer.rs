//! Writes lines to the place of a trail, and goes on behind what is missing after a failure.

use std::io::{self, Write};
use std::time::Instant;

use tenure_core::trail::TrailLine;
use tenure_engine_api::{Clock, Seldom, SystemClock};

use super::chain::ChainEnd;
use super::files::TrailFiles;
use super::{TrailOptions, TrailPlace};

/// Where lines go now.
#[derive(Debug)]
enum LineSink {
    Files(TrailFiles),
    Stderr(ChainEnd),
    /// The folder could not be opened; it is tried again.
    Unopened,
}

#[derive(Debug)]
pub(super) struct TrailWriter {
    sink: LineSink,
    /// The last attempt to write failed.
    is_broken: bool,
    /// Lines that could not be written since the last one that was.
    missed: u64,
    /// Log lines about that.
    warnings: Seldom,
}

impl TrailWriter {
    pub(super) fn new(place: &TrailPlace) -> Self {
        let sink = match place {
            TrailPlace::Folder(_) => LineSink::Unopened,
            TrailPlace::Stderr => LineSink::Stderr(ChainEnd::default()),
        };
        TrailWriter { sink, is_broken: false, missed: 0, warnings: Seldom::default() }
    }

    /// Writes a line, behind one that says how many are missing.
    pub(super) fn put(&mut self, options: &TrailOptions, line: &mut TrailLine) -> io::Result<()> {
        self.recover(options)?;
        self.append(options, line)
    }

    /// Opens the folder, if that failed before, and says how many lines are missing.
    fn recover(&mut self, options: &TrailOptions) -> io::Result<()> {
        if let (LineSink::Unopened, TrailPlace::Folder(folder)) = (&self.sink, &options.place) {
            let (files, cut) = TrailFiles::open(folder, options.most_bytes)?;
            self.sink = LineSink::Files(files);
            if let Some(cut) = cut {
                let (file, bytes) = (&cut.file, cut.bytes);
                tracing::warn!(file, bytes, "cut an incomplete line off the end of the trail");
                let detail = format!("{bytes} bytes of an incomplete line were cut off {file}");
                self.append(options, &mut TrailLine::of("trail_cut").saying(detail))?;
            }
        }
        if self.missed > 0 {
            let mut missed = TrailLine::of("trail_missed");
            missed.count = Some(self.missed);
            self.append(options, &mut missed)?;
            tracing::info!(missed = self.missed, "the trail can be written again");
            self.missed = 0;
        }
        Ok(())
    }

    fn append(&mut self, options: &TrailOptions, line: &mut TrailLine) -> io::Result<()> {
        line.server.clone_from(&options.server);
        let now = SystemClock.now();
        match &mut self.sink {
            LineSink::Files(files) => files.append(now, line),
            LineSink::Stderr(end) => {
                line.at = now;
                let (mut bytes, next) = end.seal(line)?;
                bytes.push(b'\n');
                io::stderr().lock().write_all(&bytes)?;
                *end = next;
                Ok(())
            }
            LineSink::Unopened => Err(io::Error::other("the folder of the trail is not open")),
        }
    }

    /// Whether lines can be written, as far as is known. After a failure it is tried again: it writes how many lines are
    /// missing, so that it fails as long as nothing can be written.
    pub(super) fn can_write(&mut self, options: &TrailOptions) -> bool {
        if self.is_broken {
            self.is_broken = self.recover(options).is_err();
        }
        !self.is_broken
    }

    /// Whether a line was written.
    pub(super) fn write(&mut self, options: &TrailOptions, line: &mut TrailLine) -> bool {
        let written = self.put(options, line);
        self.is_broken = written.is_err();
        if let Err(why) = written {
            self.missed += 1;
            self.warnings.happened(1);
            if let Some(lines) = self.warnings.due(Instant::now()) {
                tracing::error!(lines, %why, "the trail cannot be written");
            }
        }
        !self.is_broken
    }

    pub(super) fn files(&mut self) -> Option<&mut TrailFiles> {
        match &mut self.sink {
            LineSink::Files(files) => Some(files),
            LineSink::Stderr(_) | LineSink::Unopened => None,
        }
    }

    pub(super) fn end(&self) -> Option<&ChainEnd> {
        match &self.sink {
            LineSink::Files(files) => Some(files.end()),
            LineSink::Stderr(end) => Some(end),
            LineSink::Unopened => None,
        }
    }
}
