//! The entry of a server beside its store, and how it is written.

/// A server's description of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerEntry {
    /// Its id, new with each process.
    pub id: u128,
    /// The URL for other servers and clients.
    pub url: String,
    /// The release of Tenure that it runs.
    pub release: String,
    /// The newest format of a store that it reads. It reads the one before it too.
    pub format: u32,
    /// The last entry that its rows have; 0 if they are empty.
    pub applied: u64,
}

impl ServerEntry {
    pub(crate) fn text(&self) -> String {
        format!("{} {} {} {}", self.release, self.format, self.applied, self.url)
    }

    /// Parses a name and a value of the hash; `None` if another release wrote it in another form.
    pub(crate) fn read(id: &str, text: &str) -> Option<(u64, ServerEntry)> {
        let mut parts = text.splitn(5, ' ');
        let said = parts.next()?.parse().ok()?;
        let (release, format) = (parts.next()?.to_owned(), parts.next()?.parse().ok()?);
        let applied = parts.next()?.parse().ok()?;
        let (id, url) = (u128::from_str_radix(id, 16).ok()?, parts.next()?.to_owned());
        Some((said, ServerEntry { id, url, release, format, applied }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_entry_is_read_as_written_and_odd_texts_are_refused() {
        let me = ServerEntry {
            id: 7,
            url: "http://10.0.0.1:7070/with space".to_owned(),
            release: "0.1.0".to_owned(),
            format: 1,
            applied: 5,
        };
        let written = format!("12 {}", me.text());
        assert_eq!(ServerEntry::read("7", &written), Some((12, me)));
        let others =
            ["", "12", "12 0.1.0 x 5 http://a", "12 0.1.0 1 http://a"].map(|text| ("7", text));
        for (id, text) in others.into_iter().chain([("no", written.as_str())]) {
            assert_eq!(ServerEntry::read(id, text), None, "{id} {text:?}");
        }
    }
}
