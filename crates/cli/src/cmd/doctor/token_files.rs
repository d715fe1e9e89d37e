//! Do the servers of one store have the same file of tokens: a leader refuses a caller whose token it does not know.

use tenure::url::ServerUrl;

use super::finding::{RuleVerdict, look, ok, wrong};

/// The answer of a server about its file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum FileHash {
    Is(String),
    /// It has no file, or does not say it to this token.
    Unsaid,
}

/// Compares the files of these servers; `None`: no server says anything about its file.
pub(super) fn compared(all: &[(ServerUrl, FileHash)]) -> Option<RuleVerdict> {
    let said = |(server, hash): &(ServerUrl, FileHash)| match hash {
        FileHash::Is(hash) => Some((server.clone(), hash.clone())),
        FileHash::Unsaid => None,
    };
    let hashes: Vec<_> = all.iter().filter_map(said).collect();
    let (first, hash) = hashes.first()?;
    let fix = "give all servers of the store the same --tokens FILE: one refuses what another forwards to it";
    if let Some((other, _)) = hashes.iter().find(|(_, other)| other != hash) {
        return Some(wrong(format!("{first} and {other} have different files of tokens"), fix));
    }
    if let Some((silent, _)) = all.iter().find(|(_, hash)| *hash == FileHash::Unsaid) {
        return Some(look(
            format!(
                "{first} has a file of tokens, and {silent} has none or does not know this token as an admin's"
            ),
            fix,
        ));
    }
    (all.len() > 1).then(|| ok("all servers have the same file of tokens"))
}

#[cfg(test)]
mod tests {
    use tenure::url::StoreUrl;

    use super::*;
    use crate::cmd::doctor::finding::Severity;

    fn compared_so(hashes: &[Option<&str>]) -> Option<Severity> {
        let one = |(n, hash): (usize, &Option<&str>)| {
            let Ok(StoreUrl::Server(url)) = format!("http://h{n}:7171").parse() else {
                panic!("it is a server")
            };
            (url, hash.map_or(FileHash::Unsaid, |hash| FileHash::Is(hash.to_owned())))
        };
        let all: Vec<_> = hashes.iter().enumerate().map(one).collect();
        compared(&all).map(|(severity, ..)| severity)
    }

    #[test]
    fn files_of_tokens_are_compared() {
        for (hashes, severity) in [
            (&[][..], None),
            (&[None, None], None),
            (&[Some("a")], None),
            (&[Some("a"), Some("a"), Some("a")], Some(Severity::Ok)),
            (&[Some("a"), Some("a"), Some("b")], Some(Severity::Wrong)),
            (&[None, Some("a"), Some("a")], Some(Severity::Look)),
            (&[None, Some("a"), Some("b")], Some(Severity::Wrong)),
        ] {
            assert_eq!(compared_so(hashes), severity, "{hashes:?}");
        }
    }
}
