//! What the places table holds of a source. Changes nothing.

use tokio_postgres::Client;

use crate::error::{Doing, Error};
use crate::identity::{Held, Likeness};
use crate::preview::Stored;
use crate::record::Position;
use crate::source::Source;

/// Reads every place of the source, retired ones included.
pub async fn places(client: &Client, source: &Source) -> Result<Vec<Held>, Error> {
    let sql =
        "SELECT id, key, digest, deleted_at IS NULL, duplicate_of, name, address, latitude, longitude, attributes->>$2
        FROM places WHERE source = $1 ORDER BY id";
    let rows = client.query(sql, &[&source.name.as_str(), &source.telephone]).await.doing("reading the places")?;
    rows.iter()
        .map(|row| {
            let digest: &[u8] = row.try_get(2).doing("reading the places")?;
            let digest = digest.try_into().map_err(|_| Error::Mismatch {
                what: "bytes of a digest",
                planned: 32,
                found: digest.len() as u64,
            })?;
            let degrees = row.get::<_, Option<f64>>(7).zip(row.get(8));
            let position = degrees.map(|(latitude, longitude)| Position { latitude, longitude });
            let likeness = Likeness::new(row.get(5), row.get(6), position, row.get(9));
            let (id, key) = (row.get(0), row.get(1));
            Ok(Held { id, key, likeness, digest, active: row.get(3), duplicate_of: row.get(4) })
        })
        .collect()
}

/// The tables are there.
pub async fn is_set_up(client: &Client) -> Result<bool, Error> {
    let row =
        client.query_one("SELECT to_regclass('places') IS NOT NULL", &[]).await.doing("looking for the places")?;
    Ok(row.get(0))
}

/// Key and attributes of some places, for a preview.
pub async fn contents(client: &Client, ids: &[i64]) -> Result<Stored, Error> {
    let sql = "SELECT id, key, attributes::text FROM places WHERE id = ANY($1)";
    let rows = client.query(sql, &[&ids]).await.doing("reading the places that change")?;
    let content = |text: &str| serde_json::from_str(text).unwrap_or_default();
    Ok(rows.iter().map(|row| (row.get(0), (row.get(1), content(row.get(2))))).collect())
}
