//! What the places table holds of a source: key, digest, active. Changes nothing.

use geuneul::SourceName;

use crate::error::{Doing, Error};
use crate::lock::Locked;
use crate::plan::Held;

/// Reads every place of the source, retired ones included.
pub async fn places(locked: &Locked, source: SourceName) -> Result<Vec<Held>, Error> {
    let sql = "SELECT id, key, digest, deleted_at IS NULL FROM places WHERE source = $1 ORDER BY id";
    let rows = locked.client().query(sql, &[&source.as_str()]).await.doing("reading the places")?;
    rows.iter()
        .map(|row| {
            let digest: &[u8] = row.try_get(2).doing("reading the places")?;
            let digest = digest.try_into().map_err(|_| Error::Mismatch {
                what: "bytes of a digest",
                planned: 32,
                found: digest.len() as u64,
            })?;
            Ok(Held { id: row.get(0), key: row.get(1), digest, active: row.get(3) })
        })
        .collect()
}
