//! Numbers and names that are made here: ids of jobs that came without one, the name of this process,
//! and the part of the store in which a job lies.
//!
//! An id is made before the first call that carries it, so that a repeat of that call is the same job.

use tenure_core::job::NewJob;
use tenure_core::names::JobId;
use tenure_core::time::Moment;
use tenure_engine::ids::{ALPHABET, written};

/// Random bytes in an id; the rest is the time.
const RANDOM_BYTES: usize = 10;

/// Gives every job without an id one; whether none had one. An error is that the system has no random
/// numbers.
pub(crate) fn fill_in<'a>(
    jobs: impl Iterator<Item = &'a mut NewJob>,
    now: Moment,
) -> Result<bool, String> {
    let mut all = 0;
    let without: Vec<&mut NewJob> =
        jobs.inspect(|_| all += 1).filter(|job| job.id.is_none()).collect();
    let none_had_one = without.len() == all;
    if without.is_empty() {
        return Ok(none_had_one);
    }
    let random = random(without.len() * RANDOM_BYTES)?;
    for (job, random) in without.into_iter().zip(random.chunks_exact(RANDOM_BYTES)) {
        job.id = JobId::parse(&made("job_", now, random)).ok();
    }
    Ok(none_had_one)
}

/// A name for a process that no other has.
pub(crate) fn process(now: Moment) -> Result<String, String> {
    Ok(made("p_", now, &random(RANDOM_BYTES)?))
}

fn random(bytes: usize) -> Result<Vec<u8>, String> {
    let mut random = vec![0u8; bytes];
    getrandom::fill(&mut random).map_err(|why| format!("no random numbers: {why}"))?;
    Ok(random)
}

/// A version 7 UUID: ids sort by the millisecond in which they were made.
fn made(prefix: &str, now: Moment, random: &[u8]) -> String {
    let ms = now.us() / 1_000;
    let mut bytes = [0u8; 16];
    bytes[..6].copy_from_slice(&ms.to_be_bytes()[2..]);
    bytes[6..].copy_from_slice(random);
    bytes[6] = 0x70 | bytes[6] & 0x0f;
    bytes[8] = 0x80 | bytes[8] & 0x3f;
    written(prefix, u128::from_be_bytes(bytes))
}

/// In which of 256 parts of the store a job with this id lies. It is part of the layout.
///
/// An id that Tenure made goes by the sixteen milliseconds in which it was made, so that what is pushed
/// together lies together; any other by its CRC-32 (IEEE).
pub(crate) fn bucket(id: &str) -> u8 {
    match made_at_ms(id) {
        Some(ms) => (ms >> 4) as u8,
        None => crc32(id.as_bytes()) as u8,
    }
}

/// The low bits of the millisecond in which an id of Tenure's own form was made: its tenth digit ends
/// the 48 bits of the time.
fn made_at_ms(id: &str) -> Option<u32> {
    let digits = id.strip_prefix("job_")?.as_bytes();
    let value = |digit: &u8| ALPHABET.iter().position(|known| known == digit);
    if digits.len() != 26 || digits.iter().any(|digit| value(digit).is_none()) {
        return None;
    }
    digits[7..10].iter().try_fold(0, |ms, digit| Some(ms << 5 | value(digit)? as u32))
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes
        .iter()
        .fold(!0u32, |sum, byte| (sum >> 8) ^ TABLE[((sum ^ u32::from(*byte)) & 0xff) as usize])
}

const TABLE: [u32; 256] = {
    let mut table = [0u32; 256];
    let mut at = 0;
    while at < 256 {
        let mut sum = at as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
            bit += 1;
        }
        table[at] = sum;
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tenure_core::names::QueueName;

    use super::*;

    const NOW: Moment = Moment::from_us(1_800_000_000_000_000);

    #[test]
    fn made_ids_are_unique_and_those_that_came_stay() {
        let mut jobs = vec![NewJob::new(QueueName::parse("q").unwrap()); 1_000];
        jobs[7].id = Some(JobId::parse("mine").unwrap());
        fill_in(jobs.iter_mut(), NOW).unwrap();
        let ids: BTreeSet<&str> =
            jobs.iter().filter_map(|job| job.id.as_ref()).map(|id| id.as_str()).collect();
        assert_eq!(ids.len(), 1_000);
        assert!(ids.contains("mine"));
        assert!(ids.iter().all(|id| *id == "mine" || id.len() == 30 && id.starts_with("job_")));
    }

    #[test]
    fn processes_have_names_of_their_own() {
        assert_ne!(process(NOW).unwrap(), process(NOW).unwrap());
    }

    #[test]
    fn the_parts_of_the_store_are_those_of_the_layout() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(bucket(""), 0);
        let made = made("job_", NOW, &[7; 10]);
        assert_eq!(bucket(&made), (NOW.us() / 1_000 / 16 % 256) as u8, "{made}");
        assert_eq!(bucket("job_1"), crc32(b"job_1") as u8);
    }
}
