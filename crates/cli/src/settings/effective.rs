//! The settings of a command with all layers applied, and the tokens of a server among them.

use std::path::{Path, PathBuf};

use tenure_core::secret::Secret;

use crate::exit::Failure;
use crate::settings::file::readable_by_others;
use crate::settings::layers::{LayeredSetting, Origin, PREFIX};
use crate::settings::shown::{as_toml, has_password};
use crate::settings::token::{TokenSource, own_token, token_in};

/// The settings of a command, and where each comes from.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// All, in the order of the help.
    pub all: Vec<LayeredSetting>,
    /// The file that was read.
    pub file: Option<PathBuf>,
}

impl Settings {
    /// The layer that set a setting.
    fn origin(&self, key: &str) -> Origin {
        let found = self.all.iter().find(|setting| setting.key == key);
        found.map_or(Origin::Default, |setting| setting.origin.clone())
    }

    /// The token of a server, by where it is kept, and the layer that set it: `TENURE_TOKEN` itself is a variable as
    /// any other.
    ///
    /// # Errors
    /// Two are named, and neither takes precedence.
    pub fn token(
        &self,
        file: Option<&Path>,
        command: Option<&str>,
    ) -> Result<Option<(Origin, ServerToken)>, Failure> {
        let own = own_token()?;
        let variable = Origin::Variable(format!("{PREFIX}TOKEN"));
        let file = file.map(|path| TokenSource::File(path.to_owned()));
        let command = command.map(|command| TokenSource::Command(command.to_owned()));
        nearest([
            own.map(|token| (variable, ServerToken::Here(token))),
            file.map(|source| (self.origin("token_file"), ServerToken::Kept(source))),
            command.map(|source| (self.origin("token_command"), ServerToken::Kept(source))),
        ])
    }

    /// The token that reads the metrics alone, by where it is kept, and the layer that set it. `guards`: the server has
    /// a token of its own, or the metrics have a port of theirs; otherwise no reader would be asked for it.
    ///
    /// # Errors
    /// It is named twice, or everybody may read the metrics without it.
    pub fn metrics_token(
        &self,
        file: Option<&Path>,
        guards: bool,
    ) -> Result<Option<(Origin, ServerToken)>, Failure> {
        let variable = format!("{PREFIX}METRICS_TOKEN");
        let here = token_in(&variable)?;
        let here = here.map(|token| (Origin::Variable(variable), ServerToken::Here(token)));
        let file = file.map(|path| {
            let source = TokenSource::File(path.to_owned());
            (self.origin("metrics_token_file"), ServerToken::Kept(source))
        });
        let Some((origin, token)) = nearest([here, file])? else { return Ok(None) };
        if !guards {
            return Err(Failure::usage(format!(
                "the {origin} names a token for the metrics alone, and the server has no token: everybody can read them"
            ))
            .hint("give the server a token too (TENURE_TOKEN, --token-file), or the metrics a port of their own \
                   (--metrics-listen), or leave this one out"));
        }
        Ok(Some((origin, token)))
    }

    /// A warning about settings that can be used, but should be changed.
    pub fn warning(&self) -> Option<String> {
        let named = self.all.iter().find(|setting| setting.key == "store")?;
        let password = named.values.iter().flatten().any(|address| has_password(address));
        let in_file = password && matches!(named.origin, Origin::File(_));
        let file = self.file.as_deref().filter(|_| in_file)?;
        readable_by_others(file, "the password of the store")
    }

    /// All of it as a file with the same settings, without secrets.
    pub fn as_toml(&self, token: Option<&Origin>) -> String {
        as_toml(&self.all, token)
    }
}

/// Of several tokens for one thing, the one that takes precedence.
fn nearest<const N: usize>(
    named: [Option<(Origin, ServerToken)>; N],
) -> Result<Option<(Origin, ServerToken)>, Failure> {
    let mut found: Vec<_> = named.into_iter().flatten().collect();
    found.sort_by_key(|(origin, _)| origin.rank());
    if let [(one, _), (other, _), ..] = &found[..]
        && one.rank() == other.rank()
    {
        return Err(Failure::usage(format!("two tokens are named: by {one} and by {other}"))
            .hint("name one of them"));
    }
    Ok(found.into_iter().next())
}

/// The token of a server.
pub enum ServerToken {
    /// The value of a variable.
    Here(Secret),
    /// It is still to be read.
    Kept(TokenSource),
}

impl ServerToken {
    /// The tokens themselves; a warning in the log names other users that may read them.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn read(&self) -> Result<Vec<Secret>, Failure> {
        match self {
            ServerToken::Here(token) => Ok(vec![token.clone()]),
            ServerToken::Kept(source) => {
                if let Some(warning) = source.warning() {
                    tracing::warn!("{warning}");
                }
                source.read_all()
            }
        }
    }

    /// The file that holds them, if one does.
    pub fn file(&self) -> Option<&Path> {
        match self {
            ServerToken::Kept(TokenSource::File(path)) => Some(path),
            _ => None,
        }
    }
}
