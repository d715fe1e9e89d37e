//! The `tenure` under test: the command line as users have it, not a server of our own making.

use std::path::{Path, PathBuf};

use tenure_console::child_processes::{ChildServer, ServerStore};
use tenure_console::exit::{Failure, UNAVAILABLE};

/// Starts a server of it. Its log is in `folder`, and so is its store, if it has one there.
///
/// # Errors
/// There is no such program, or its server does not answer.
pub async fn server(folder: &Path, store: ServerStore) -> Result<ChildServer, Failure> {
    ChildServer::start(&program()?, folder, store).await
}

/// The program in TENURE_BIN, otherwise the one beside this program, where cargo puts both.
fn program() -> Result<PathBuf, Failure> {
    let named = std::env::var_os("TENURE_BIN").filter(|named| !named.is_empty());
    let program = match named {
        Some(named) => PathBuf::from(named),
        None => std::env::current_exe()
            .map_err(|error| Failure::file("cannot find this program", &error))?
            .with_file_name("tenure"),
    };
    if program.is_file() {
        return Ok(program);
    }
    Err(Failure::new(UNAVAILABLE, format!("there is no program '{}'", program.display())).hint(
        "build it with the same profile (cargo build --package tenure-cli, with --release if this \
         program was built so), or name another in TENURE_BIN",
    ))
}
