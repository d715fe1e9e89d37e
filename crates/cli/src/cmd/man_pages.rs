//! A manual page for each command, made from the same types as the help. Packages call it when they are built.

use std::path::PathBuf;

use clap::Args;

use crate::args::help;
use crate::exit::{DISK, Failure};

/// The arguments of `man-pages`.
#[derive(Args, Debug)]
pub struct ManPagesArgs {
    /// A folder that is there; it gets `tenure.1`, `tenure-serve.1` and so on.
    folder: PathBuf,
}

impl ManPagesArgs {
    /// Writes all of them, or says which folder refused them.
    pub fn write(self) -> Result<(), Failure> {
        clap_mangen::generate_to(help::told(), &self.folder).map_err(|why| {
            let folder = self.folder.display();
            Failure::new(DISK, format!("cannot write the manual pages into '{folder}': {why}"))
                .hint("name an existing folder that you can write to")
        })
    }
}
