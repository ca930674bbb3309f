//! What the places table holds of a source. Changes nothing.

use std::collections::HashSet;
use std::pin::pin;

use futures_util::TryStreamExt;
use tokio_postgres::types::FromSql;
use tokio_postgres::{Client, Row as Stored};

use crate::error::{Doing, Error};
use crate::identity::{Held, Likeness, base_of};
use crate::preview;
use crate::record::{Digest, Handle, Position, Record, Row};
use crate::source::Source;
use crate::upstream;

const PLACES: &str = "SELECT id, key, digest, deleted_at IS NULL, duplicate_of, name, category, address, province, district, latitude, longitude,
    attributes::text FROM places WHERE source = $1 ORDER BY id";

/// Reads every place of the source, retired ones included, row by row: what is kept of one is a fraction of it.
pub async fn places(client: &Client, source: &Source) -> Result<Vec<Held>, Error> {
    let doing = "reading the places";
    let mut rows = pin!(client.query_raw(PLACES, [source.name.as_str()]).await.doing(doing)?);
    let (mut places, mut keys) = (Vec::new(), HashSet::new());
    while let Some(row) = rows.try_next().await.doing(doing)? {
        let held = held(&row, source)?;
        if !keys.insert(held.key.clone()) {
            return Err(Error::TwoOfAKey(held.key));
        }
        places.push(held);
    }
    Ok(places)
}

fn held(row: &Stored, source: &Source) -> Result<Held, Error> {
    let (key, digest): (&str, &[u8]) = (get(row, 1)?, get(row, 2)?);
    let degrees = get::<Option<f64>>(row, 10)?.zip(get(row, 11)?);
    let columns = Columns {
        name: get(row, 5)?,
        category: get(row, 6)?,
        address: get(row, 7)?,
        province: get(row, 8)?,
        district: get(row, 9)?,
        position: degrees.map(|(latitude, longitude)| Position { latitude, longitude }),
    };
    // What is stored is read as if it were published. If a run wrote it, the same comes out.
    let content = (source.read)(&upstream::item(get(row, 12)?));
    let telephone = if let Row::Good(record) = &content { record.telephone.as_deref() } else { None };
    let likeness = Likeness::new(columns.name, columns.address, columns.position, telephone);
    let digest = Digest::try_from(digest).ok().filter(|digest| match &content {
        Row::Good(record) => record.digest == *digest && is_of(key, &record.handle) && columns == Columns::of(record),
        Row::Bad(_) => false,
    });
    Ok(Held {
        id: get(row, 0)?,
        key: key.to_owned(),
        likeness,
        digest,
        active: get(row, 3)?,
        duplicate_of: get(row, 4)?,
    })
}

/// A NULL or a type that our tables cannot have is an error that says so.
fn get<'a, T: FromSql<'a>>(row: &'a Stored, column: usize) -> Result<T, Error> {
    row.try_get(column).doing("reading the places")
}

fn is_of(key: &str, handle: &Handle) -> bool {
    base_of(key).split_once('/') == Some((handle.institution.as_str(), handle.name.as_str()))
}

/// What is stored twice of a place: in columns of its own, and among its attributes.
#[derive(PartialEq)]
struct Columns<'a> {
    name: &'a str,
    category: Option<&'a str>,
    address: Option<&'a str>,
    province: Option<&'a str>,
    district: Option<&'a str>,
    position: Option<Position>,
}

impl<'a> Columns<'a> {
    fn of(record: &'a Record) -> Columns<'a> {
        Columns {
            name: &record.handle.name,
            category: record.category.as_deref(),
            address: record.handle.address.as_deref(),
            province: record.province.as_deref(),
            district: record.district.as_deref(),
            position: record.position,
        }
    }
}

/// Key and attributes of some places, for a preview.
pub async fn contents(client: &Client, ids: &[i64]) -> Result<preview::Stored, Error> {
    let sql = "SELECT id, key, attributes::text FROM places WHERE id = ANY($1)";
    let rows = client.query(sql, &[&ids]).await.doing("reading the places that change")?;
    let content = |text: &str| serde_json::from_str(text).unwrap_or_default();
    Ok(rows.iter().map(|row| (row.get(0), (row.get(1), content(row.get(2))))).collect())
}
