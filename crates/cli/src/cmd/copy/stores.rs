//! The stores of a copy or a restore, as the command line names them.

use std::path::Path;

use tenure::url::StoreUrl;
use tenure_engine::CopyFolder;
use tenure_engine::copy::{Source, Target};
use tenure_node::CopyRedis;

use crate::exit::{Failure, UNAVAILABLE};
use crate::store::not_opened;

/// A store in the hands of a copy.
pub enum Hands {
    Folder(Box<CopyFolder>),
    Redis(Box<CopyRedis>),
}

impl Hands {
    pub fn source(&self) -> &dyn Source {
        match self {
            Hands::Folder(folder) => &**folder,
            Hands::Redis(copy) => &**copy,
        }
    }
    pub fn target(&self) -> &dyn Target {
        match self {
            Hands::Folder(folder) => &**folder,
            Hands::Redis(copy) => &**copy,
        }
    }
}

/// Which of the two stores.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    From,
    To,
}

/// A store as the command line names it.
pub struct NamedStore {
    url: StoreUrl,
    /// The address as it is shown: without a password.
    pub shown: String,
}

impl NamedStore {
    /// Refuses what is no store.
    pub fn parse(text: &str, side: Side) -> Result<Self, Failure> {
        let option = if side == Side::From { "--from" } else { "--to" };
        let usage = |why: String| Failure::usage(format!("{option}: {why}"));
        let url: StoreUrl = text.parse().map_err(|why| usage(format!("{why}")))?;
        let shown = match &url {
            StoreUrl::Server(_) | StoreUrl::Servers(_) => {
                return Err(usage("this is a server, not a store".to_owned()).hint(
                    "stop the server, and name its store: file:PATH, or redis:// and the like",
                ));
            }
            StoreUrl::Memory => {
                return Err(usage("a store in memory ends with this command".to_owned())
                    .hint("name file:PATH, or redis:// and the like"));
            }
            StoreUrl::File(path) => {
                // The mark of the other store shows it, perhaps to a reader on another machine.
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                format!("file:{}", path.display())
            }
            StoreUrl::Redis(address) => address.to_string(),
        };
        Ok(NamedStore { url, shown })
    }

    /// The folder, if it is one.
    pub fn folder(&self) -> Option<&Path> {
        match &self.url {
            StoreUrl::File(path) => Some(path),
            StoreUrl::Redis(_) | StoreUrl::Server(_) | StoreUrl::Servers(_) | StoreUrl::Memory => {
                None
            }
        }
    }

    /// Opens it, so that nobody else uses it. `make`: a folder that does not exist is made.
    pub fn open(&self, make: bool) -> Result<Hands, Failure> {
        match &self.url {
            StoreUrl::File(path) => {
                let opened = if make { CopyFolder::target(path) } else { CopyFolder::source(path) };
                Ok(Hands::Folder(Box::new(opened.map_err(|why| not_opened(&why))?)))
            }
            StoreUrl::Redis(address) => {
                let (address, name) = (address.clone(), address.name().to_owned());
                let opened = if make {
                    CopyRedis::target(address, &name)
                } else {
                    CopyRedis::source(address, &name)
                };
                let opened = opened.map_err(|why| Failure::told(UNAVAILABLE, &why.to_string()))?;
                Ok(Hands::Redis(Box::new(opened)))
            }
            StoreUrl::Server(_) | StoreUrl::Servers(_) | StoreUrl::Memory => {
                Err(Failure::bug("this is no store"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_with_its_store_name_and_no_password() {
        for (text, shown) in [
            ("redis://:geheim@host", "redis://•••@host:6379"),
            ("redis://host?name=app", "redis://host:6379?name=app"),
            ("file:/var/lib/t", "file:/var/lib/t"),
        ] {
            let named = NamedStore::parse(text, Side::From).map(|named| named.shown);
            assert_eq!(named.as_deref(), Ok(shown), "{text}");
        }
        for text in ["http://host", "memory:", "nothing"] {
            let no = NamedStore::parse(text, Side::To).err().map(|no| no.code);
            assert_eq!(no, Some(crate::exit::USAGE), "{text}");
        }
    }
}
