//! CMD's environment: the variables and files of the contract, in a folder that nobody else can read.
//!
//! The data of a resource goes into CMD's environment and into the lease file and nowhere else: not into an argument, a
//! message or a log. The folder is removed when this value is dropped.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tenure_core::json::{Document, Kind};
use tenure_core::lease::{LeaseView, LeasedResource};

use crate::child::run_folder::RunFolder;
use crate::settings::profile;

const RESOURCE: &str = "TENURE_RESOURCE_";
/// Set for some runs and not for others: a value that a parent `tenure` set must not be taken for ours.
const PER_RUN: &[&str] = &[
    "TENURE_LEASE",
    "TENURE_JOB_ID",
    "TENURE_QUEUE",
    "TENURE_KIND",
    "TENURE_ATTEMPT",
    "TENURE_DEADLINE",
    "TENURE_SCHEDULE",
    "TENURE_SCHEDULE_AT",
    "TENURE_FLOW",
    "TENURE_PARENTS_FILE",
    "TENURE_PAYLOAD_FILE",
    "TENURE_RESULT_FILE",
    "TENURE_OUTCOME_FILE",
    "TENURE_PROGRESS_FILE",
    "TENURE_VERDICT_FILE",
    "TENURE_FENCE",
    TRACEPARENT,
    "TRACESTATE",
];

/// The trace of the job, under the name that tracing libraries read.
pub const TRACEPARENT: &str = "TRACEPARENT";

/// Variables that open the store, or say where a token, a certificate or an address with a password is kept. With them
/// CMD could do all that this process may, and so could every reader of CMD's environment.
const CREDENTIALS: [&str; 14] = [
    "TENURE_TOKEN",
    "TENURE_METRICS_TOKEN",
    "TENURE_URL",
    "TENURE_STORE",
    "TENURE_TOKEN_FILE",
    "TENURE_TOKEN_COMMAND",
    "TENURE_CONFIG",
    "TENURE_HTTP",
    "TENURE_HTTP_SECRET",
    "TENURE_SCRAPYD",
    "TENURE_CA",
    "TENURE_CLIENT_CERT",
    "TENURE_CLIENT_KEY",
    profile::VARIABLE,
];

/// The file of a job's parents, in the folder of its run. The code that makes that folder writes it, since that takes a
/// store.
pub const PARENTS: &str = "parents.ndjson";

/// Files through which `work` and CMD exchange data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFiles {
    /// The payload; also CMD's stdin.
    pub payload: PathBuf,
    /// CMD writes its result here.
    pub result: PathBuf,
    /// CMD writes a settle item here.
    pub outcome: PathBuf,
    /// CMD writes its progress here.
    pub progress: PathBuf,
}

/// Variables, files and folder of one CMD.
pub struct Environment {
    /// Variables to set, in order; none holds a zero byte, which no environment can carry.
    set: Vec<(OsString, OsString)>,
    /// Variables of this process that CMD must not see.
    remove: Vec<OsString>,
    /// Only for CMD of `work`.
    pub files: Option<JobFiles>,
    /// The file in which CMD of `lock` and `lease` may write a settle item. It has a name of its own, since such a CMD
    /// may be part of a job, and report the job's end in the job's outcome file.
    pub verdict: PathBuf,
    /// Removed, with its content, when this is dropped.
    _folder: RunFolder,
}

impl Environment {
    /// For a lease: its files in this folder, and the variables. `credentials` says whether CMD also
    /// gets the variables with which this process opens its store.
    ///
    /// # Errors
    /// A file could not be written.
    pub fn of(lease: &LeaseView, folder: RunFolder, credentials: bool) -> io::Result<Self> {
        let mut set = Vec::new();
        let mut put = |name: &str, value: &OsStr| set.push((name.into(), value.to_owned()));
        let lease_file = folder.path().join("lease.json");
        private(&lease_file)?.write_all(serde_json::to_string(lease)?.as_bytes())?;
        if let Some(id) = &lease.lease {
            put("TENURE_LEASE", OsStr::new(id));
        }
        // An empty name selects no profile, not even the default one, which a `tenure` in CMD would find by itself.
        let profile = if credentials { profile::name() } else { Some("") };
        if let Some(profile) = profile {
            put(profile::VARIABLE, OsStr::new(profile));
        }
        put("TENURE_FENCE", OsStr::new(&lease.fence.to_string()));
        put("TENURE_LEASE_FILE", lease_file.as_os_str());
        for (name, value) in lease.resources.first().map(resource).unwrap_or_default() {
            put(&name, OsStr::new(&value));
        }
        let (mut files, verdict) = (None, folder.path().join("verdict.json"));
        if lease.job.is_none() && lease.lease.is_some() {
            put("TENURE_VERDICT_FILE", verdict.as_os_str());
        }
        if let Some(job) = &lease.job {
            put("TENURE_JOB_ID", OsStr::new(job.id.as_str()));
            put("TENURE_QUEUE", OsStr::new(job.queue.as_str()));
            put("TENURE_KIND", OsStr::new(&job.kind));
            put("TENURE_ATTEMPT", OsStr::new(&job.attempt.to_string()));
            if let Some(deadline) = lease.deadline {
                put("TENURE_DEADLINE", OsStr::new(&deadline.to_string()));
            }
            if let Some(made_by) = &job.schedule {
                put("TENURE_SCHEDULE", OsStr::new(made_by.id.as_str()));
                if let Some(at) = made_by.at {
                    put("TENURE_SCHEDULE_AT", OsStr::new(&at.to_string()));
                }
            }
            if let Some(flow) = &job.flow {
                put("TENURE_FLOW", OsStr::new(flow.as_str()));
            }
            if let Some(trace) = &job.traceparent {
                put(TRACEPARENT, OsStr::new(trace.as_str()));
            }
            if job.parents > 0 {
                put("TENURE_PARENTS_FILE", folder.path().join(PARENTS).as_os_str());
            }
            let made = JobFiles {
                payload: folder.path().join("payload.json"),
                result: folder.path().join("result"),
                outcome: folder.path().join("outcome.json"),
                progress: folder.path().join("progress"),
            };
            let payload = job.payload.clone().unwrap_or_default();
            private(&made.payload)?.write_all(payload.text().as_bytes())?;
            put("TENURE_PAYLOAD_FILE", made.payload.as_os_str());
            put("TENURE_RESULT_FILE", made.result.as_os_str());
            put("TENURE_OUTCOME_FILE", made.outcome.as_os_str());
            put("TENURE_PROGRESS_FILE", made.progress.as_os_str());
            files = Some(made);
        }
        // A zero byte would keep CMD from starting at all; the lease file has the value whole.
        set.retain(|(_, value): &(OsString, OsString)| !value.as_encoded_bytes().contains(&0));
        let remove = kept_back(lease, credentials, std::env::vars_os().map(|(name, _)| name));
        Ok(Environment { set, remove, files, verdict, _folder: folder })
    }

    /// The variables to set.
    pub fn set(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.set.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// The variables to remove, before others are set.
    pub fn remove(&self) -> impl Iterator<Item = &OsStr> {
        self.remove.iter().map(OsString::as_os_str)
    }
}

/// Variables that CMD must not see: the credentials of this process unless CMD is to have them, and those that a
/// `tenure` around this one has set and CMD would take for its own. A lock within a job keeps the job's variables, and
/// its account too unless the lock has one of its own.
fn kept_back(
    lease: &LeaseView,
    credentials: bool,
    names: impl Iterator<Item = OsString>,
) -> Vec<OsString> {
    let job = lease.job.is_some();
    let account = job || !lease.resources.is_empty();
    let goes = |name: &OsString| {
        let Some(name) = name.to_str() else { return false };
        (job && PER_RUN.contains(&name))
            || name == "TENURE_LEASE"
            || (account && name.starts_with(RESOURCE))
            || (!credentials && CREDENTIALS.contains(&name))
    };
    names.filter(goes).collect()
}

/// `TENURE_RESOURCE_ID`, and a variable per member if the data is an object of plain values.
fn resource(resource: &LeasedResource) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    let text = resource.data.text();
    if let Ok(data) = Document::parse(text.as_bytes()) {
        let root = data.root();
        let plain = |kind| !matches!(kind, Kind::Object | Kind::Array);
        if root.kind() == Kind::Object && root.members().all(|(_, node)| plain(node.kind())) {
            for (key, node) in root.members() {
                let value = match node.kind() {
                    Kind::String => node.string().map(|text| text.into_owned()),
                    Kind::Null => Some(String::new()),
                    _ => Some(node.text().to_owned()),
                };
                variables.extend(value.map(|value| (variable(&key), value)));
            }
        }
    }
    // Last, so that a member of the data that is called "id" does not hide it.
    variables.push((format!("{RESOURCE}ID"), resource.id.to_string()));
    variables
}

/// The name of the variable for a member of a resource's data.
fn variable(key: &str) -> String {
    let upper = key.to_uppercase();
    let plain = |c: char| if c.is_ascii_uppercase() || c.is_ascii_digit() { c } else { '_' };
    format!("{RESOURCE}{}", upper.chars().map(plain).collect::<String>())
}

/// A new file that only its owner can read.
pub fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Keeps CMD, which is of the same user, from reading the token out of this process: its environment and its memory are
/// closed to others, and it leaves no core. CMD itself is another program, for which the kernel opens both again.
pub fn close_to_cmd() {
    // An old kernel or a filter may refuse it: then nothing changes.
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_dumpable(false);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt;
    use tenure_core::job::MadeBy;
    use tenure_core::names::{FlowName, PoolName, ResourceId, ScheduleId};
    use tenure_core::secret::Json;
    use tenure_core::time::Moment;
    use tenure_testkit::fake;

    fn account(data: &str) -> LeasedResource {
        LeasedResource {
            pool: PoolName::parse("accounts").unwrap(),
            id: ResourceId::parse("139").unwrap(),
            data: Json::parse(data).unwrap(),
            tags: vec![],
        }
    }

    fn seen(environment: &Environment) -> BTreeMap<String, String> {
        let text = |text: &OsStr| text.to_str().unwrap().to_owned();
        environment.set().map(|(name, value)| (text(name), text(value))).collect()
    }

    #[test]
    fn data_of_plain_values_becomes_variables() {
        for (data, want) in [
            (
                r#"{"user":"ann","pass-word":"x=y","n":1.50,"on":true,"no":null,"id":"other"}"#,
                vec![
                    ("ID", "139"),
                    ("N", "1.50"),
                    ("NO", ""),
                    ("ON", "true"),
                    ("PASS_WORD", "x=y"),
                    ("USER", "ann"),
                ],
            ),
            (r#"{"user":"ann","tags":["a"]}"#, vec![("ID", "139")]),
            (r#""secret""#, vec![("ID", "139")]),
            ("null", vec![("ID", "139")]),
            (r#"{"größe":"x"}"#, vec![("GR__E", "x"), ("ID", "139")]),
        ] {
            let all: BTreeMap<_, _> = resource(&account(data)).into_iter().collect();
            let want: BTreeMap<_, _> = want
                .into_iter()
                .map(|(name, value)| (format!("TENURE_RESOURCE_{name}"), value.to_owned()))
                .collect();
            if data.contains("größe") {
                assert!(all.keys().all(|key| {
                    key.bytes().all(|c| c == b'_' || c.is_ascii_uppercase() || c.is_ascii_digit())
                }));
                continue;
            }
            assert_eq!(all, want, "{data}");
        }
    }

    #[test]
    fn a_job_gets_variables_and_a_private_folder_removed_at_its_end() {
        let lease = fake::job_lease("L1", "{\"url\":\"x\"}");
        let environment = Environment::of(&lease, RunFolder::new().unwrap(), false).unwrap();
        let seen = seen(&environment);
        for (name, value) in [
            ("TENURE_LEASE", "L1"),
            ("TENURE_FENCE", "7"),
            ("TENURE_JOB_ID", "job-L1"),
            ("TENURE_QUEUE", "q"),
            ("TENURE_KIND", "k"),
            ("TENURE_ATTEMPT", "1"),
        ] {
            assert_eq!(seen[name], value);
        }
        assert!(!seen.contains_key("TENURE_DEADLINE") && !seen.contains_key("TENURE_RESOURCE_ID"));
        let payload = Path::new(&seen["TENURE_PAYLOAD_FILE"]);
        assert_eq!(std::fs::read_to_string(payload).unwrap(), "{\"url\":\"x\"}");
        let whole: LeaseView =
            serde_json::from_str(&std::fs::read_to_string(&seen["TENURE_LEASE_FILE"]).unwrap())
                .unwrap();
        assert_eq!(whole, lease);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = payload.parent().unwrap().to_owned();
        assert_eq!((mode(&folder), mode(payload)), (0o700, 0o600));
        assert_eq!(mode(Path::new(&seen["TENURE_LEASE_FILE"])), 0o600);
        drop(environment);
        assert!(!folder.exists());
    }

    #[test]
    fn a_job_of_a_schedule_finds_the_schedule_and_its_moment() {
        let of = |made_by: Option<MadeBy>| {
            let mut lease = fake::job_lease("L1", "1");
            lease.job.as_mut().unwrap().schedule = made_by;
            seen(&Environment::of(&lease, RunFolder::new().unwrap(), false).unwrap())
        };
        let id = ScheduleId::parse("news-42").unwrap();
        let at: Moment = "2026-12-01T08:00:00Z".parse().unwrap();
        let fired = of(Some(MadeBy { id: id.clone(), at: Some(at) }));
        assert_eq!(fired["TENURE_SCHEDULE"], "news-42");
        assert_eq!(fired["TENURE_SCHEDULE_AT"], "2026-12-01T08:00:00.000000Z");
        let by_hand = of(Some(MadeBy { id, at: None }));
        assert_eq!(by_hand["TENURE_SCHEDULE"], "news-42");
        assert!(!by_hand.contains_key("TENURE_SCHEDULE_AT"));
        assert!(of(None).keys().all(|name| !name.starts_with("TENURE_SCHEDULE")));
    }

    #[test]
    fn a_job_finds_its_trace_and_not_that_of_the_worker() {
        const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let mut lease = fake::job_lease("L1", "1");
        let names = || ["TRACEPARENT", "TRACESTATE", "HOME"].map(OsString::from).into_iter();
        assert_eq!(kept_back(&lease, false, names()), ["TRACEPARENT", "TRACESTATE"]);
        lease.job.as_mut().unwrap().traceparent = Some(TRACE.parse().unwrap());
        let environment = Environment::of(&lease, RunFolder::new().unwrap(), false).unwrap();
        assert_eq!(seen(&environment)[TRACEPARENT], TRACE);
    }

    #[test]
    fn a_job_of_a_flow_with_parents_finds_its_name_and_their_file() {
        let of = |flow: Option<&str>, parents: u32| {
            let mut lease = fake::job_lease("L1", "1");
            let job = lease.job.as_mut().unwrap();
            (job.flow, job.parents) = (flow.map(|flow| FlowName::parse(flow).unwrap()), parents);
            let environment = Environment::of(&lease, RunFolder::new().unwrap(), false).unwrap();
            let seen = seen(&environment);
            let file = seen.get("TENURE_PARENTS_FILE").map(|file| file.ends_with(PARENTS));
            (seen.get("TENURE_FLOW").cloned(), file)
        };
        assert_eq!(of(Some("import 7"), 2), (Some("import 7".to_owned()), Some(true)));
        assert_eq!(of(None, 0), (None, None));
    }

    #[test]
    fn a_value_with_a_zero_byte_does_not_keep_cmd_from_starting() {
        let mut lease = fake::needs_lease("L1");
        lease.resources = vec![account(r#"{"a":"x\u0000y","b":"z"}"#)];
        let seen = seen(&Environment::of(&lease, RunFolder::new().unwrap(), false).unwrap());
        assert!(!seen.contains_key("TENURE_RESOURCE_A"));
        assert_eq!(seen["TENURE_RESOURCE_B"], "z");
    }

    #[test]
    fn what_an_outer_tenure_set_is_not_taken_for_ones_own() {
        let outer = ["TENURE_LEASE", "TENURE_JOB_ID", "TENURE_RESOURCE_PASS", "HOME"];
        let of = |lease: &LeaseView| kept_back(lease, false, outer.iter().map(OsString::from));
        let mut lease = fake::needs_lease("L1");
        assert_eq!(of(&lease), ["TENURE_LEASE"]);
        lease.resources = vec![account("{}")];
        assert_eq!(of(&lease), ["TENURE_LEASE", "TENURE_RESOURCE_PASS"]);
        let job = fake::job_lease("L1", "1");
        assert_eq!(of(&job), ["TENURE_LEASE", "TENURE_JOB_ID", "TENURE_RESOURCE_PASS"]);
    }

    #[test]
    fn credentials_of_the_store_are_removed_unless_passed() {
        let names = ["TENURE_TOKEN", "TENURE_URL", "TENURE_STORE", "TENURE_NAMESPACE", "PATH"];
        let of = |credentials| {
            kept_back(&fake::needs_lease("L1"), credentials, names.iter().map(OsString::from))
        };
        assert_eq!(of(false), ["TENURE_TOKEN", "TENURE_URL", "TENURE_STORE"]);
        assert_eq!(of(true), Vec::<OsString>::new());
        let own = |credentials| {
            let folder = RunFolder::new().unwrap();
            let made = Environment::of(&fake::needs_lease("L1"), folder, credentials).unwrap();
            seen(&made).get(profile::VARIABLE).cloned()
        };
        assert_eq!((own(false).as_deref(), own(true)), (Some(""), None));
    }
}
