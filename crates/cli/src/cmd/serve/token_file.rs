//! The tokens of a server and of its metrics, and their files, which are read again while it serves.

use std::path::PathBuf;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use tenure_core::secret::Secret;
use tenure_engine_api::ids::fill_random;
use tenure_server::{TOKEN_BYTES_MIN, Tokens, is_short};

use super::listener::{ListenTokens, addresses};
use super::metrics_port;
use super::renewal::{Renewal, Renewed, Reread};
use crate::args::serve::ServeArgs;
use crate::exit::{Failure, UNAVAILABLE};
use crate::settings::effective::ServerToken;
use crate::settings::layers::Origin;
use crate::settings::tokens_file;

/// Checks if tokens that were read may become valid.
type Check = Arc<dyn Fn(&[Secret]) -> Result<(), Failure> + Send + Sync>;

/// Tokens that come from a file.
#[derive(Clone)]
struct TokenFile {
    path: PathBuf,
    source: Arc<ServerToken>,
    check: Check,
    tokens: Tokens,
}

/// Reads the tokens of a server, and from now on their files again. A token that is too short for an address of the
/// server never becomes valid.
///
/// # Errors
/// They cannot be read, or are too short.
pub fn read(
    token: Option<ServerToken>,
    args: &ServeArgs,
    renewal: &mut Renewal,
) -> Result<Tokens, Failure> {
    if token.is_none() && args.tokens.is_none() {
        return Ok(Tokens::default());
    }
    let has_listed = args.tokens.is_some();
    let metrics = args.metrics_listen.clone().map(|listen| (metrics_port::OPTION, listen));
    let listens = [("--listen", args.listen.clone())].into_iter().chain(metrics);
    let check = long_enough_for(listens.collect(), has_listed);
    let tokens = Tokens::locking(&seed()?);
    if let Some(token) = token {
        checked(token, check, tokens.clone(), renewal)?;
    }
    if let Some(path) = args.tokens.clone() {
        let file = ListedFile { path: path.clone(), tokens: tokens.clone() };
        renewal.first(vec![path], || file.read().map(|_count| file))?;
    }
    Ok(tokens)
}

/// A random text that no file has.
fn seed() -> Result<String, Failure> {
    let mut seed = [0; 32];
    fill_random(&mut seed).map_err(|why| Failure::new(UNAVAILABLE, why.to_string()))?;
    Ok(HEXLOWER.encode(&seed))
}

/// The file of tokens with grants of their own.
#[derive(Clone)]
struct ListedFile {
    path: PathBuf,
    tokens: Tokens,
}

impl ListedFile {
    /// How many tokens it has now.
    fn read(&self) -> Result<usize, Failure> {
        let tokens = tokens_file::read(&self.path)?;
        let count = tokens.len();
        self.tokens.replace_listed(tokens);
        Ok(count)
    }
}

impl Renewed for ListedFile {
    fn renew(&mut self) -> Reread {
        told(self.path.display().to_string(), self.read())
    }
}

/// Logs that a file of tokens was read again. The result has the number of its tokens.
fn told(file: String, read: Result<usize, Failure>) -> Reread {
    let is_used = read.is_ok();
    match read {
        Ok(count) => tracing::info!(file, count, "only the new tokens are valid now"),
        Err(why) => {
            let why = why.sentence.unwrap_or_default();
            tracing::warn!(file, "cannot use the new tokens, the previous ones stay: {why}");
        }
    }
    Reread { op: "tokens_reread", file, is_used }
}

/// Reads the tokens that open the metrics alone, as [`read`] does those of the server.
///
/// # Errors
/// They cannot be read, or are too short.
pub fn read_of_metrics(
    token: Option<(Origin, ServerToken)>,
    renewal: &mut Renewal,
) -> Result<Tokens, Failure> {
    let Some((origin, token)) = token else { return Ok(Tokens::default()) };
    let check = move |tokens: &[Secret]| {
        if !tokens.iter().any(is_short) {
            return Ok(());
        }
        Err(Failure::usage(format!("the token for the metrics ({origin}) is too short"))
            .hint(format!("make it a random text of at least {TOKEN_BYTES_MIN} characters")))
    };
    let tokens = Tokens::locking(&seed()?);
    checked(token, Arc::new(check), tokens.clone(), renewal)?;
    Ok(tokens)
}

/// `listens`: the options with the server's addresses, and their values. `has_listed`: callers may also show a token of
/// which the server has the hash alone.
fn long_enough_for(listens: Vec<(&'static str, String)>, has_listed: bool) -> Check {
    Arc::new(move |tokens| {
        listens.iter().try_for_each(|(option, listen)| {
            addresses(option, listen, ListenTokens { whole: tokens, has_listed }).map(drop)
        })
    })
}

/// Reads tokens with all rights into `tokens`, and from now on their file again.
fn checked(
    source: ServerToken,
    check: Check,
    tokens: Tokens,
    renewal: &mut Renewal,
) -> Result<(), Failure> {
    let Some(path) = source.file().map(ToOwned::to_owned) else {
        tokens.replace(found(&source, &check)?);
        return Ok(());
    };
    let first = || {
        tokens.replace(found(&source, &check)?);
        Ok::<_, Failure>(TokenFile { path: path.clone(), source: Arc::new(source), check, tokens })
    };
    renewal.first(vec![path.clone()], first).map(drop)
}

fn found(source: &ServerToken, check: &Check) -> Result<Vec<Secret>, Failure> {
    let found = source.read()?;
    check(&found)?;
    Ok(found)
}

impl Renewed for TokenFile {
    fn renew(&mut self) -> Reread {
        let replaced = found(&self.source, &self.check).map(|found| {
            let count = found.len();
            self.tokens.replace(found);
            count
        });
        told(self.path.display().to_string(), replaced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::token::TokenSource;

    #[test]
    fn a_token_too_short_for_a_listen_address_never_becomes_valid() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        let long = "x".repeat(32);
        std::fs::write(&path, &long).unwrap();
        let source = Arc::new(ServerToken::Kept(TokenSource::File(path.clone())));
        let tokens = Tokens::of(source.read().unwrap());
        let check = long_enough_for(vec![("--listen", "0.0.0.0:7171".to_owned())], false);
        let mut file = TokenFile { path: path.clone(), source, check, tokens };
        let mut valid = |text: &str| {
            std::fs::write(&path, text).unwrap();
            file.renew();
            ["short", &long, &long.replace('x', "y")]
                .map(|token| file.tokens.who(token.as_bytes()).is_some())
        };
        assert_eq!(valid(&format!("{long}\nshort\n")), [false, true, false]);
        assert_eq!(valid(""), [false, true, false]);
        assert_eq!(valid(&long.replace('x', "y")), [false, false, true]);
    }
}
