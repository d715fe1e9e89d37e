//! In which part of the store a job lies, by its id. It is part of the layout.

use crc::{CRC_32_ISO_HDLC, Crc};
use tenure_engine::ids::job_made_at_ms;

const CRC_32: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

/// In which of 256 parts of the store a job with this id lies.
///
/// An id that Tenure made goes by the sixteen milliseconds in which it was made, so that what is pushed
/// together lies together; any other by its CRC-32.
pub(crate) fn bucket(id: &str) -> u8 {
    match job_made_at_ms(id) {
        Some(ms) => (ms >> 4) as u8,
        None => CRC_32.checksum(id.as_bytes()) as u8,
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::time::Moment;
    use tenure_engine::ids::fresh;

    use super::*;

    #[test]
    fn the_parts_of_the_store_are_those_of_the_layout() {
        for (id, part) in [("", 0x00), ("123456789", 0x26), ("job_1", 0x4b)] {
            assert_eq!(bucket(id), part, "{id}");
        }
        let now = Moment::from_us(1_800_000_000_000_000);
        let made = fresh("job_", now).expect("random numbers");
        assert_eq!(bucket(&made), (now.us() / 1_000 / 16 % 256) as u8, "{made}");
    }
}
