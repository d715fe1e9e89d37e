//! Unpredictable numbers: ids of processes and stores, and the secret of a store.

use data_encoding::HEXLOWER;
use tenure_core::secret::Secret;
use tenure_engine_api::ids::fill_random;

use crate::options::NodeError;

/// An id that no other process or store has.
pub(crate) fn id() -> Result<u128, NodeError> {
    let mut bytes = [0; 16];
    fill_random(&mut bytes).map_err(|why| NodeError::Random(why.to_string()))?;
    Ok(u128::from_le_bytes(bytes))
}

/// A secret for a store without one.
pub(crate) fn secret() -> Result<Secret, NodeError> {
    let mut bytes = [0; 32];
    fill_random(&mut bytes).map_err(|why| NodeError::Random(why.to_string()))?;
    Ok(Secret::new(HEXLOWER.encode(&bytes)))
}
