//! The tokens of a server, and the file of them, which is read anew while it serves.

use std::path::PathBuf;
use std::sync::Arc;

use tenure_core::secret::Secret;
use tenure_server::Tokens;

use super::listener::addresses;
use super::metrics_port;
use super::renewal::{Renewal, Renewed};
use crate::args::serve::ServeArgs;
use crate::exit::Failure;
use crate::settings::ServerToken;

/// Tokens that are a file's.
#[derive(Clone)]
struct TokenFile {
    path: PathBuf,
    source: Arc<ServerToken>,
    tokens: Tokens,
    /// Options that say where the server listens, and what they say: no new token may be too short for that.
    listens: Vec<(&'static str, String)>,
}

/// Reads them, and their file anew from now on.
///
/// # Errors
/// They cannot be read.
pub fn read(
    token: Option<ServerToken>,
    args: &ServeArgs,
    renewal: &mut Renewal,
) -> Result<Tokens, Failure> {
    let Some(token) = token else { return Ok(Tokens::default()) };
    let Some(path) = token.file().map(ToOwned::to_owned) else {
        return token.read().map(Tokens::of);
    };
    let metrics = args.metrics_listen.clone().map(|listen| (metrics_port::OPTION, listen));
    let listens = [("--listen", args.listen.clone())].into_iter().chain(metrics).collect();
    let first = || {
        let (source, tokens) = (Arc::new(token), Tokens::default());
        let mut file = TokenFile { path: path.clone(), source, tokens, listens };
        file.tokens = Tokens::of(file.source.read()?);
        Ok::<_, Failure>(file)
    };
    renewal.first(vec![path.clone()], first).map(|file| file.tokens)
}

impl TokenFile {
    fn found(&self) -> Result<Vec<Secret>, Failure> {
        let found = self.source.read()?;
        for (option, listen) in &self.listens {
            addresses(option, listen, &found)?;
        }
        Ok(found)
    }
}

impl Renewed for TokenFile {
    fn renew(&mut self) {
        let file = self.path.display().to_string();
        match self.found() {
            Ok(found) => {
                let count = found.len();
                self.tokens.replace(found);
                tracing::info!(
                    file,
                    count,
                    "the tokens that were read now are valid, and no others"
                );
            }
            Err(why) => {
                let why = why.sentence.unwrap_or_default();
                tracing::warn!(
                    file,
                    "the tokens that were read now cannot be used, and those before stay: {why}"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::token::TokenSource;

    #[test]
    fn no_token_becomes_valid_that_is_too_short_for_where_the_server_listens() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        let long = "x".repeat(32);
        std::fs::write(&path, &long).unwrap();
        let source = Arc::new(ServerToken::Kept(TokenSource::File(path.clone())));
        let tokens = Tokens::of(source.read().unwrap());
        let listens = vec![("--listen", "0.0.0.0:7171".to_owned())];
        let mut file = TokenFile { path: path.clone(), source, tokens, listens };
        let mut valid = |text: &str| {
            std::fs::write(&path, text).unwrap();
            file.renew();
            ["short", &long, &long.replace('x', "y")]
                .map(|token| file.tokens.take(token.as_bytes()))
        };
        assert_eq!(valid(&format!("{long}\nshort\n")), [false, true, false]);
        assert_eq!(valid(""), [false, true, false]);
        assert_eq!(valid(&long.replace('x', "y")), [false, false, true]);
    }
}
