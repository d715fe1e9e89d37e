//! The language of job searches: `queue:crawl state:failed error:"http 5" label:site=a group:7`.
//!
//! A search is kept in the address, so that it can be sent to a colleague. The reader of the API's query reads the
//! values, and refuses those that it does not know.

use tenure_core::decode::Queried;
use tenure_core::job::{JobState, JobView};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{JobFilter, ListJobs};

/// The keys of a search.
const KEYS: [&str; 11] = [
    "queue", "state", "kind", "label", "error", "group", "flow", "schedule", "after", "before",
    "id",
];

/// One word of a search, in its written form.
pub(crate) fn term(key: &str, value: &str) -> String {
    let plain =
        !value.is_empty() && !value.contains(|c: char| c.is_whitespace() || "\"\\".contains(c));
    if plain {
        format!("{key}:{value}")
    } else {
        format!("{key}:\"{}\"", value.replace('\\', r"\\").replace('"', "\\\""))
    }
}

/// A search for jobs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct JobSearch {
    /// Keys and values in their order.
    terms: Vec<(String, String)>,
}

impl JobSearch {
    /// Reads a search. Nothing is refused here: a word without a key is an id.
    pub(crate) fn read(text: &str) -> Self {
        let mut terms = Vec::new();
        let mut rest = text.chars().peekable();
        loop {
            while rest.next_if(|c| c.is_whitespace()).is_some() {}
            if rest.peek().is_none() {
                return JobSearch { terms };
            }
            let mut key = String::new();
            while let Some(c) = rest.next_if(|c| c.is_ascii_lowercase() || *c == '_') {
                key.push(c);
            }
            let has_key = !key.is_empty() && rest.next_if_eq(&':').is_some();
            let mut value = if has_key { String::new() } else { std::mem::take(&mut key) };
            if has_key && rest.next_if_eq(&'"').is_some() {
                while let Some(c) = rest.next().filter(|c| *c != '"') {
                    value.push(if c == '\\' { rest.next().unwrap_or(c) } else { c });
                }
            } else {
                while let Some(c) = rest.next_if(|c| !c.is_whitespace()) {
                    value.push(c);
                }
            }
            // `key:KEY` names a job, as in every other place.
            let names_job = !has_key || key == "key";
            let value = if key == "key" { format!("key:{value}") } else { value };
            terms.push((if names_job { "id".to_owned() } else { key }, value));
        }
    }

    /// The search in its written form.
    pub(crate) fn text(&self) -> String {
        let words: Vec<String> = self.terms.iter().map(|(key, value)| term(key, value)).collect();
        words.join(" ")
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.terms.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The id of a single job.
    pub(crate) fn id(&self) -> Option<&str> {
        self.get("id")
    }

    /// Words without a key: if no word is the id of a job, each of them must fit a job.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().filter(|(key, _)| key == "id").map(|(_, value)| value.as_str())
    }

    /// Whether every word fits a job: as the beginning of its id, as its kind, or as a label or the value of one.
    pub(crate) fn has_words(&self, job: &JobView) -> bool {
        let is_label = |word: &str| {
            job.labels.iter().any(|(key, value)| {
                value.as_str() == word
                    || word.split_once('=') == Some((key.as_str(), value.as_str()))
            })
        };
        self.words()
            .all(|word| job.id.as_str().starts_with(word) || job.kind == word || is_label(word))
    }

    /// The first unknown key.
    pub(crate) fn unknown_key(&self) -> Option<&str> {
        self.terms.iter().map(|(key, _)| key.as_str()).find(|key| !KEYS.contains(key))
    }

    /// The group, by which the API cannot filter: the page that shows a list filters by it.
    pub(crate) fn group(&self) -> Option<&str> {
        self.get("group")
    }

    /// The queue, if the search has no key beside it and the state.
    pub(crate) fn queue_alone(&self) -> Option<&str> {
        let others = self.terms.iter().any(|(key, _)| key != "queue" && key != "state");
        self.get("queue").filter(|_| !others)
    }

    /// Whether the search has no key beside the state.
    pub(crate) fn is_of_state_alone(&self) -> bool {
        self.terms.iter().all(|(key, _)| key == "state")
    }

    /// The state, if its name is valid.
    pub(crate) fn state(&self) -> Option<JobState> {
        self.get("state").and_then(|text| text.parse().ok())
    }

    /// The same search in another state, or in any.
    pub(crate) fn in_state(&self, state: Option<JobState>) -> Self {
        let mut terms = self.terms.clone();
        terms.retain(|(key, _)| key != "state");
        if let Some(state) = state {
            terms.push(("state".to_owned(), state.to_string()));
        }
        JobSearch { terms }
    }

    /// Whether a call on many jobs can follow it: it has terms, and only those by which the API can filter.
    pub(crate) fn can_be_acted_on(&self) -> bool {
        !self.terms.is_empty() && self.id().is_none() && self.group().is_none()
    }

    /// The request for a page of jobs.
    pub(crate) fn request(&self, max: usize, cursor: Option<&str>) -> Result<ListJobs, Refusal> {
        let max = max.to_string();
        let mut query: Vec<(&str, String)> = vec![("max", max)];
        for (key, value) in &self.terms {
            let (name, value) = match key.as_str() {
                "id" | "group" => continue,
                "after" => ("finished_after", value.clone()),
                "before" => ("finished_before", value.clone()),
                // `label:k=v` as on the command line; the API has a colon.
                "label" if !value.contains(':') => ("label", value.replacen('=', ":", 1)),
                key => (key, value.clone()),
            };
            query.push((name, value));
        }
        query.extend(cursor.map(|cursor| ("cursor", cursor.to_owned())));
        ListJobs::of_query((), &query)
    }

    /// The filter of a call on many jobs.
    pub(crate) fn filter(&self) -> Result<JobFilter, Refusal> {
        Ok(self.request(1, None)?.filter)
    }

    /// The same search as options of the command line.
    pub(crate) fn options(&self) -> Vec<String> {
        let mut words = Vec::new();
        for (key, value) in self.terms.iter().filter(|(key, _)| key != "id" && key != "group") {
            let name = match key.as_str() {
                "after" => "finished-after",
                "before" => "finished-before",
                key => key,
            };
            words.extend([format!("--{name}"), value.clone()]);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_read_and_written_back() {
        for (text, back) in [
            ("", ""),
            ("  queue:crawl   state:failed ", "queue:crawl state:failed"),
            ("error:\"http 5\" group:7", "error:\"http 5\" group:7"),
            (r#"error:"a \"b\" \\c""#, r#"error:"a \"b\" \\c""#),
            ("job_01h", "id:job_01h"),
            ("key:daily", "id:key:daily"),
            ("label:site=a.b", "label:site=a.b"),
            ("queue:", "queue:\"\""),
            ("error:\"open", "error:open"),
            ("Größe", "id:Größe"),
            ("state:ready,blocked", "state:ready,blocked"),
        ] {
            let search = JobSearch::read(text);
            assert_eq!(search.text(), back, "{text}");
            assert_eq!(JobSearch::read(&search.text()), search, "{text}");
        }
    }

    #[test]
    fn a_search_becomes_the_filter_of_the_api() {
        let search = JobSearch::read(r#"queue:crawl state:failed,ready error:"http 5" label:a=b"#);
        let filter = search.filter().unwrap();
        assert_eq!(filter.queue.unwrap().as_str(), "crawl");
        assert_eq!(filter.states, [JobState::Failed, JobState::Ready]);
        assert_eq!(filter.error.as_deref(), Some("http 5"));
        assert_eq!(filter.label, Some(("a".to_owned(), "b".to_owned())));
        assert_eq!(search.options()[..2], ["--queue", "crawl"]);
        assert!(search.can_be_acted_on());
    }

    #[test]
    fn what_the_api_does_not_know_is_refused_by_it() {
        for text in ["colour:red", "state:lost", "queue:a queue:b", "after:yesterday"] {
            assert!(JobSearch::read(text).filter().is_err(), "{text}");
        }
        for text in ["", "group:7 state:failed", "job_1"] {
            assert!(!JobSearch::read(text).can_be_acted_on(), "{text}");
        }
    }

    #[test]
    fn another_state_takes_the_place_of_the_one_before() {
        let search = JobSearch::read("state:failed queue:a");
        assert_eq!(search.in_state(Some(JobState::Ready)).text(), "queue:a state:ready");
        assert_eq!(search.in_state(None).text(), "queue:a");
        assert_eq!(search.queue_alone(), Some("a"));
        assert_eq!(search.state(), Some(JobState::Failed));
    }
}
