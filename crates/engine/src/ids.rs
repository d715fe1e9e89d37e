//! The form of the ids that Tenure makes: a prefix and a version 7 UUID in Crockford's base 32, in
//! lower case, as in `job_01jd8x3k9mf5wt2c6h4vbqzr7e`.
//!
//! The one place that knows the alphabet. It makes no random numbers and reads no clock: whoever
//! makes an id brings its 128 bits.

/// Crockford's alphabet: no i, l, o and u, so that an id can be read out loud. The digits rise as
/// their bytes do, so ids sort as their numbers.
pub const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Digits after the prefix: as many as 128 bits need.
pub const DIGITS: usize = 26;

/// `prefix` and 26 digits for these 128 bits, the highest first.
pub fn written(prefix: &str, uuid: u128) -> String {
    let mut text = String::with_capacity(prefix.len() + DIGITS);
    text.push_str(prefix);
    for place in (0..DIGITS).rev() {
        text.push(char::from(ALPHABET[(uuid >> (5 * place)) as usize & 31]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
