//! The ids that Tenure makes: a prefix and a version 7 UUID in Crockford's base 32, in lower case, as
//! in `job_01jd8x3k9mf5wt2c6h4vbqzr7e`.
//!
//! The one place that knows this layout, for all engines and for the client. Ids sort by the
//! millisecond in which they were made, and are unpredictable. The caller passes the time: an
//! engine's ids follow its own clock.

use tenure_core::job::NewJob;
use tenure_core::names::JobId;
use tenure_core::time::Moment;
use uuid::Builder;

use crate::{CallError, Fault};

/// Crockford's alphabet: no i, l, o and u, so that an id can be read out loud. The digits rise as
/// their bytes do, so ids sort as their numbers.
pub const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Digits after the prefix: as many as 128 bits need.
pub const DIGITS: usize = 26;
/// The prefix of a job's id that Tenure made.
const JOB: &str = "job_";
/// Random bytes of an id; the rest is the time.
const RANDOM_BYTES: usize = 10;

/// The error of a system without random numbers; nothing was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the system has no random numbers: {0}")]
pub struct NoRandomNumbers(#[source] getrandom::Error);

impl From<NoRandomNumbers> for Fault {
    fn from(why: NoRandomNumbers) -> Self {
        Fault::Unavailable(why.to_string())
    }
}
impl From<NoRandomNumbers> for CallError {
    fn from(why: NoRandomNumbers) -> Self {
        Fault::from(why).into()
    }
}

/// Fills `bytes` with random ones.
pub fn fill_random(bytes: &mut [u8]) -> Result<(), NoRandomNumbers> {
    getrandom::fill(bytes).map_err(NoRandomNumbers)
}

/// Writes `prefix` and 26 digits for these 128 bits, the highest first.
pub fn written(prefix: &str, uuid: u128) -> String {
    let mut text = String::with_capacity(prefix.len() + DIGITS);
    text.push_str(prefix);
    for place in (0..DIGITS).rev() {
        text.push(char::from(ALPHABET[(uuid >> (5 * place)) as usize & 31]));
    }
    text
}

/// A new id that begins with `prefix`.
pub fn fresh(prefix: &str, now: Moment) -> Result<String, NoRandomNumbers> {
    let mut random = [0; RANDOM_BYTES];
    fill_random(&mut random)?;
    Ok(made(prefix, now, &random))
}

/// A new id of a job.
///
/// # Errors
/// The system has no random numbers.
pub fn job_id(now: Moment) -> Result<JobId, NoRandomNumbers> {
    let id = fresh(JOB, now)?;
    let Ok(id) = JobId::parse(&id) else { unreachable!("a prefix and digits are an id") };
    Ok(id)
}

/// Gives each job without an id a new one, before the first call that carries it: so a repeat of that
/// call is the same job. Returns true if no job had an id.
pub fn fill_in<'a>(
    jobs: impl Iterator<Item = &'a mut NewJob>,
    now: Moment,
) -> Result<bool, NoRandomNumbers> {
    let mut all = 0;
    let without: Vec<&mut NewJob> =
        jobs.inspect(|_| all += 1).filter(|job| job.id.is_none()).collect();
    let none_had_one = without.len() == all;
    let mut random = vec![[0; RANDOM_BYTES]; without.len()];
    fill_random(random.as_flattened_mut())?;
    for (job, random) in without.into_iter().zip(&random) {
        job.id = JobId::parse(&made(JOB, now, random)).ok();
    }
    Ok(none_had_one)
}

fn made(prefix: &str, now: Moment, random: &[u8; RANDOM_BYTES]) -> String {
    let uuid = Builder::from_unix_timestamp_millis(now.us() / 1_000, random).into_uuid();
    written(prefix, uuid.as_u128())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tenure_core::names::QueueName;

    use super::*;

    const NOW: Moment = Moment::from_us(1_800_000_000_123_007);

    #[test]
    fn an_id_is_its_prefix_and_26_digits_in_lower_case() {
        for (uuid, text) in [
            (0, "job_00000000000000000000000000"),
            (31, "job_0000000000000000000000000z"),
            (32, "job_00000000000000000000000010"),
            (u128::MAX, "job_7zzzzzzzzzzzzzzzzzzzzzzzzz"),
        ] {
            assert_eq!(written("job_", uuid), text);
        }
    }

    #[test]
    fn made_ids_are_unique_and_sorted_by_time_and_given_ids_stay() {
        let queue = QueueName::parse("q").unwrap();
        let mut jobs = vec![NewJob::new(queue.clone()); 1_000];
        jobs[7].id = Some(JobId::parse("mine").unwrap());
        assert_eq!(fill_in(jobs.iter_mut(), NOW), Ok(false));
        let first: BTreeSet<&str> =
            jobs.iter().filter_map(|job| job.id.as_ref()).map(|id| id.as_str()).collect();
        assert_eq!(first.len(), 1_000);
        assert!(first.contains("mine"));
        assert!(first.iter().all(|id| *id == "mine" || id.len() == 30 && id.starts_with("job_")));
        let mut later = [NewJob::new(queue)];
        let in_a_ms = Moment::from_us(NOW.us() + 1_000);
        assert_eq!(fill_in(later.iter_mut(), in_a_ms), Ok(true));
        let later = later[0].id.as_ref().unwrap().as_str();
        assert!(first.iter().all(|id| *id == "mine" || *id < later));
        assert_eq!(fill_in([].iter_mut(), NOW), Ok(true));
    }

    #[test]
    fn an_id_is_a_version_7_uuid_that_tells_its_millisecond() {
        let id = made("job_", NOW, &[0xff; RANDOM_BYTES]);
        // 48 bits of time, the version 7, 12 random bits, the variant 2, 62 random bits.
        let whole = 1_800_000_000_123_u128 << 80 | 0x7fff << 64 | 0xbfff_ffff_ffff_ffff;
        assert_eq!(id, written("job_", whole));
    }

    #[test]
    fn two_processes_have_different_ids() {
        assert_ne!(fresh("p_", NOW), fresh("p_", NOW));
    }
}
