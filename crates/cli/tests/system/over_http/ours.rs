//! The built command: a server of Tenure, workers, and the output of both.

use std::ops::Deref;
use std::time::Duration;

use serde_json::Value;
use tenure_testkit::tenure::{Process, Server};

use crate::{client, serving};

/// Longer than this nothing here takes.
const PATIENCE: Duration = Duration::from_secs(90);

pub fn until(what: &str, so: impl FnMut() -> bool) {
    tenure_testkit::tenure::until(PATIENCE, what, so);
}

/// A server of Tenure, killed when it is dropped.
pub struct Tenure(Server);

impl Deref for Tenure {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.0
    }
}

impl Tenure {
    pub fn start() -> Self {
        Tenure(Server::start(&mut serving("memory:"), PATIENCE))
    }

    pub fn push(&self, job: &Value) {
        let (status, answer) = self.ask("POST /v1/jobs", job);
        assert_eq!(status, 201, "{answer}");
    }

    pub fn job(&self, id: &str) -> Value {
        self.look(&format!("/v1/jobs/{id}")).1
    }

    pub fn state(&self, id: &str) -> String {
        self.job(id)["state"].as_str().unwrap_or("gone").to_owned()
    }

    /// The job, once it is in this state.
    pub fn once(&self, id: &str, state: &str) -> Value {
        until(&format!("job {id} is {state}"), || self.state(id) == state);
        self.job(id)
    }

    /// How many jobs are in this state.
    pub fn count(&self, state: &str) -> u64 {
        self.look("/v1/stats").1["jobs"][state].as_u64().unwrap_or(0)
    }

    pub fn worker(&self, arguments: &[&str]) -> Process {
        self.worker_with(arguments, &[])
    }

    pub fn worker_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Process {
        let mut work = client(&self.url(), &[&["work", "q"], arguments].concat());
        Process::start(work.envs(variables.iter().copied()), PATIENCE)
    }
}
