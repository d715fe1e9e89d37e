//! What is granted to a call that waits, in the step that makes a job ready: what it costs, and what becomes of it when
//! its message is lost, too long or late, or when nobody is there to read it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_core::job::{JobState, Need, NewJob};
use tenure_core::lease::Leased;
use tenure_core::names::{JobId, JobRef, LimitName, Namespace, QueueName, RequestId, WorkerId};
use tenure_core::requests::{
    GetJob, Lease, ListWorkers, Page, Push, PushAnswer, PutLimit, Request, TryInto as _,
};
