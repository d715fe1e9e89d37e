//! When a server took the store over, as Redis shows it, and which calls two leaders may have done because of that.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_testkit::redis::RedisServer;

use crate::linear::history::{Answer, Call, Event, now_us};

/// The file of the takeovers, in the folder of a history.
pub const FILE: &str = "takeovers";
/// How often Redis is asked for the leader.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Between these two moments another ownership of the store began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Takeover {
    pub after: u64,
    pub before: u64,
}

/// Looks for takeovers and writes them down.
pub struct Watch<'r> {
    redis: &'r RedisServer,
    file: File,
    /// The last epoch that was seen, and a moment before that.
    epoch: String,
    looked: u64,
}

impl<'r> Watch<'r> {
    /// Watches a store that has a leader.
    pub fn new(redis: &'r RedisServer, folder: &Path) -> Self {
        let file = File::create_new(folder.join(FILE)).expect("a file of its own");
        let looked = now_us();
        Watch { redis, file, epoch: epoch(redis), looked }
    }

    /// Looks until the other end of `over` is gone, and once more then.
    pub fn until(mut self, over: &Receiver<()>) {
        loop {
            let is_over = over.recv_timeout(LOOK_EVERY) != Err(RecvTimeoutError::Timeout);
            self.look();
            if is_over {
                return;
            }
        }
    }

    fn look(&mut self) {
        let (looked, epoch) = (now_us(), epoch(self.redis));
        if epoch != self.epoch {
            let takeover = Takeover { after: self.looked, before: now_us() };
            let line = serde_json::to_string(&takeover).expect("a takeover can be written");
            self.file.write_all(format!("{line}\n").as_bytes()).expect("its file takes a line");
        }
        (self.looked, self.epoch) = (looked, epoch);
    }
}

fn epoch(redis: &RedisServer) -> String {
    redis.must(&["HGET", "{tenure}:own", "epoch"]).text()
}

impl Takeover {
    fn may_be_within(&self, event: &Event) -> bool {
        self.after <= event.end && event.begin <= self.before
    }
}

/// The first sending of an answered call, if a server may have sent it twice. A server that forwards a call sends it
/// again when the store gets another leader meanwhile, and the leader before may have done it. Then the answer is that
/// of the second sending, and the first had none. `None`: it was sent once, or the second sending finds all as if it
/// were the only one.
pub fn first_sending(event: &Event, takeovers: &[Takeover]) -> Option<Event> {
    let answer = event.answer.as_ref()?;
    let shows = match &event.call {
        // A second push of an id is a duplicate, its own included. After any other answer the first sending stored nothing.
        Call::Push { id } => {
            matches!(answer, Answer::Pushed { id: told, duplicate: true } if told == id)
        }
        // The job may have been retried between the two, or have come to its end.
        Call::Cancel { .. } => !matches!(answer, Answer::NotFound | Answer::Unavailable),
        // The store knows the request, or the lease: the second sending gets the answer of the first.
        Call::Lease { .. } | Call::Extend { .. } | Call::Settle { .. } => false,
        // A server sends it once.
        Call::Retry { .. } => false,
        Call::Get { .. } => false,
    };
    let is_twice = shows && takeovers.iter().any(|takeover| takeover.may_be_within(event));
    is_twice.then(|| Event { answer: None, ..event.clone() })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tenure_core::job::JobState;
    use tenure_testkit::redis::Aof;
    use tenure_testkit::{TempDir, needs_redis};

    use super::*;
    use crate::linear::faults::faults;
    use crate::linear::history::History;
    use crate::linear::samples::{cancel, event, get, push, pushed, retry, shown};

    const MS: u64 = 1_000;
    const KEY: &str = "key";
    const JOB: &str = "job";

    fn taken_over(after: u64, before: u64) -> Vec<Takeover> {
        vec![Takeover { after: after * MS, before: before * MS }]
    }

    #[track_caller]
    fn is(wanted: bool, what: &str, events: &[Event], takeovers: Vec<Takeover>) {
        let faults = faults(&History { events: events.to_vec(), takeovers });
        assert_eq!(faults.is_empty(), wanted, "{what}: {}", faults.join("\n"));
    }

    /// The leader stored `x` and was killed before it answered. The next leader received the same push.
    fn pushes_at_once() -> Vec<Event> {
        vec![
            event(KEY, 0, 164, push("y"), pushed("x", true)),
            event(KEY, 1, 152, push("x"), pushed("x", true)),
            event(KEY, 29, 151, push("z"), pushed("x", true)),
        ]
    }

    #[test]
    fn a_push_may_find_its_own_job_only_across_a_takeover() {
        let there = |id| event(KEY, 170, 171, get(id), shown(JobState::Ready, 0));
        let with = |more| [pushes_at_once(), vec![more]].concat();
        is(true, "a takeover while it was away", &with(there("x")), taken_over(140, 150));
        is(true, "seen late", &with(there("x")), taken_over(140, 1_000));
        is(false, "no takeover", &with(there("x")), vec![]);
        is(false, "a takeover before it", &with(there("x")), taken_over(0, 0));
        is(false, "a takeover after it", &with(there("x")), taken_over(153, 160));
    }

    #[test]
    fn a_takeover_excuses_nothing_else_of_a_push() {
        let bad = |what, more: Vec<Event>| {
            is(false, what, &[pushes_at_once(), more].concat(), taken_over(140, 150));
        };
        let lost = event(KEY, 170, 171, get("x"), Some(Answer::NotFound));
        bad("it is lost after its answer", vec![lost]);
        let again = event(KEY, 170, 171, push("x"), pushed("x", false));
        bad("it is stored again", vec![again]);
        let second = event(KEY, 170, 171, push("v"), pushed("v", false));
        bad("a second one has the key", vec![second]);
        let second = event(KEY, 2, 160, push("v"), pushed("v", true));
        bad("a second one, pushed at once, has the key", vec![second]);
        let stored_later = [
            event(KEY, 0, 1, push("x"), pushed("x", false)),
            event(KEY, 2, 160, push("y"), pushed("x", true)),
            event(KEY, 10, 11, Call::Cancel { id: "x".to_owned() }, shown(JobState::Cancelled, 0)),
            event(KEY, 170, 171, get("y"), shown(JobState::Ready, 0)),
        ];
        is(false, "another job is told, and it is stored", &stored_later, taken_over(140, 150));
        let nobody = event(KEY, 0, 160, push("y"), pushed("x", true));
        is(false, "nobody pushed the job that is told", &[nobody], taken_over(140, 150));
    }

    #[test]
    fn a_cancel_that_two_owners_were_sent_may_call_off_a_job_twice() {
        let ready = || shown(JobState::Ready, 0);
        let cancelled = || shown(JobState::Cancelled, 0);
        let calls = |end| {
            [
                event(JOB, 0, 1, push(JOB), pushed(JOB, false)),
                event(JOB, 2, end, cancel(), cancelled()),
                event(JOB, 3, 4, get(JOB), cancelled()),
                event(JOB, 5, 6, retry(), ready()),
                event(JOB, 7, 8, get(JOB), ready()),
                event(JOB, 51, 52, get(JOB), cancelled()),
            ]
        };
        is(true, "before and after a retry", &calls(50), taken_over(5, 6));
        is(false, "no takeover", &calls(50), vec![]);
        is(false, "the second time after its answer", &calls(5), taken_over(3, 4));
    }

    #[test]
    fn a_takeover_is_written_down() {
        needs_redis!();
        let (redis, folder) = (RedisServer::start(Aof::Off, &[]), TempDir::new());
        let own = |epoch| redis.must(&["HSET", "{tenure}:own", "epoch", epoch]);
        own("1");
        let begin = now_us();
        let mut watch = Watch::new(&redis, folder.path());
        watch.look();
        own("2");
        let (playing, over) = mpsc::channel();
        drop(playing);
        watch.until(&over);
        let takeovers = History::read(folder.path()).takeovers;
        let [Takeover { after, before }] = takeovers[..] else { panic!("{takeovers:?}") };
        assert!(begin <= after && after < before && before <= now_us(), "{takeovers:?}");
    }
}
