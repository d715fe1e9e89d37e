//! Ids of jobs that came without one: `job_` and a version 7 UUID, written as in
//! [`tenure_engine::ids`].
//!
//! They sort by the millisecond in which they were made, and nobody can foresee them.

use tenure_core::job::NewJob;
use tenure_core::names::JobId;
use tenure_core::time::Moment;
use tenure_engine::ids::written;

/// Gives every job without an id one. An error is that the system has no random numbers.
pub(crate) fn fill_in<'a>(
    jobs: impl Iterator<Item = &'a mut NewJob>,
    now: Moment,
) -> Result<(), String> {
    let without: Vec<&mut NewJob> = jobs.filter(|job| job.id.is_none()).collect();
    if without.is_empty() {
        return Ok(());
    }
    let mut random = vec![0u8; without.len() * 10];
    getrandom::fill(&mut random).map_err(|why| format!("no random numbers: {why}"))?;
    for (job, random) in without.into_iter().zip(random.chunks_exact(10)) {
        job.id = JobId::parse(&made(now, random)).ok();
    }
    Ok(())
}

fn made(now: Moment, random: &[u8]) -> String {
    let ms = now.us() / 1_000;
    let mut bytes = [0u8; 16];
    bytes[..6].copy_from_slice(&ms.to_be_bytes()[2..]);
    bytes[6..].copy_from_slice(random);
    bytes[6] = 0x70 | bytes[6] & 0x0f;
    bytes[8] = 0x80 | bytes[8] & 0x3f;
    written("job_", u128::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tenure_core::names::QueueName;
    use tenure_engine::ids::ALPHABET;

    use super::*;

    #[test]
    fn made_ids_are_unique_and_sort_by_time() {
        let queue = QueueName::parse("q").unwrap();
        let mut jobs = vec![NewJob::new(queue.clone()); 1_000];
        jobs[7].id = Some(JobId::parse("mine").unwrap());
        fill_in(jobs.iter_mut(), Moment::from_us(1_800_000_000_000_000)).unwrap();
        let first: BTreeSet<String> =
            jobs.iter().filter_map(|job| job.id.as_ref()).map(|id| id.to_string()).collect();
        assert_eq!(first.len(), 1_000);
        assert!(first.contains("mine"));
        assert!(first.iter().all(|id| id == "mine" || id.len() == 30 && id.starts_with("job_")));
        let mut later = vec![NewJob::new(queue); 1];
        fill_in(later.iter_mut(), Moment::from_us(1_800_000_000_001_000)).unwrap();
        let later = later[0].id.as_ref().unwrap().to_string();
        assert!(first.iter().all(|id| id == "mine" || *id < later));
    }

    #[test]
    fn an_id_is_a_version_7_uuid() {
        let ms = 1_800_000_000_123;
        let id = made(Moment::from_us(ms * 1_000 + 7), &[0xff; 10]);
        let digits = id.strip_prefix("job_").unwrap().bytes();
        let value = |digit: u8| ALPHABET.iter().position(|d| *d == digit).unwrap() as u128;
        let number = digits.fold(0, |number, digit| number << 5 | value(digit));
        assert_eq!((number >> 80) as u64, ms);
        assert_eq!((number >> 76) & 0xf, 7, "the version");
        assert_eq!((number >> 62) & 0x3, 2, "the variant");
    }
}
