//! Brings the schema up to date: plain SQL files, each applied once, under an advisory lock of its own.

use sha2::{Digest, Sha256};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, GenericClient};

use crate::config::Schema;
use crate::error::chain;
use crate::lock::LockKey;
use crate::session::Session;

/// In order, from version 1. A file that was released is never edited: its checksum is in the database.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_ledger_and_places.sql"),
    include_str!("../migrations/0002_skips.sql"),
    include_str!("../migrations/0003_identity.sql"),
    include_str!("../migrations/0004_dry_runs.sql"),
];

/// The tables that must not be somebody else's.
const OUR_TABLES: &[&str] =
    &["ingest_schema", "ingest_sources", "ingest_runs", "ingest_changes", "ingest_rejects", "places"];

/// The schema's version that this program works with.
pub fn latest() -> i32 {
    MIGRATIONS.len() as i32
}

/// The schema is not as a run needs it.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// Something that a person has to decide.
    #[error(transparent)]
    Refused(#[from] SchemaRefusal),
    /// A statement failed.
    #[error("{doing}: {}", chain(.source))]
    Database {
        /// What the statement was for.
        doing: &'static str,
        /// What the server, or the connection, said.
        source: tokio_postgres::Error,
    },
}

/// Why a schema is left alone.
#[derive(Debug, thiserror::Error)]
pub enum SchemaRefusal {
    /// A later version of this program made it.
    #[error("schema {schema} is at version {found}, and this program knows versions up to {known}")]
    TooNew {
        /// The schema.
        schema: String,
        /// Its version.
        found: i32,
        /// Ours.
        known: i32,
    },
    /// An earlier version of this program made it.
    #[error("schema {schema} is at version {found}, and this program reads version {known}")]
    Behind {
        /// The schema.
        schema: String,
        /// Its version.
        found: i32,
        /// Ours.
        known: i32,
    },
    /// What was applied is not what this program would have applied.
    #[error("migration {version} of schema {schema} is not the one that this program has: the checksums differ")]
    Changed {
        /// The schema.
        schema: String,
        /// The migration.
        version: i32,
    },
    /// The names are taken.
    #[error("schema {schema} has tables of somebody else under our names: {tables}")]
    Foreign {
        /// The schema.
        schema: String,
        /// The names.
        tables: String,
    },
    /// The tables are ours by their names, and nothing says which migrations made them.
    #[error("schema {schema} has our tables, and its record of migrations, ingest_schema, is empty")]
    Forgotten {
        /// The schema.
        schema: String,
    },
    /// The role may not.
    #[error("schema {schema} is at version {found} of {known}, and this role may not migrate it: {said}")]
    NotAllowed {
        /// The schema.
        schema: String,
        /// Its version; 0 when it is not there.
        found: i32,
        /// Ours.
        known: i32,
        /// What the server said.
        said: String,
    },
}

impl SchemaRefusal {
    /// The way out.
    pub fn hint(&self) -> &'static str {
        match self {
            SchemaRefusal::TooNew { .. } => "run the version of this program that migrated it, or a later one",
            SchemaRefusal::Behind { .. } => "run `ingest migrate`, or let the next run do it",
            SchemaRefusal::Changed { .. } => {
                "somebody edited a released migration or its record; compare the tables with the files in migrations/"
            }
            SchemaRefusal::Foreign { .. } => "choose another schema with INGEST_DB_SCHEMA",
            SchemaRefusal::Forgotten { .. } => {
                "restore the rows of ingest_schema from a backup, or choose another schema with INGEST_DB_SCHEMA"
            }
            SchemaRefusal::NotAllowed { .. } => {
                "run `ingest migrate` once with a role that may create the schema and its tables"
            }
        }
    }
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migrated {
    /// The version before; 0 when there was nothing.
    pub from: i32,
    /// The version now.
    pub to: i32,
}

fn doing(what: &'static str) -> impl Fn(tokio_postgres::Error) -> SchemaError {
    move |source| SchemaError::Database { doing: what, source }
}

/// Applies what is missing. When nothing is, one read is all it costs, and no right but SELECT is needed.
pub async fn ensure(session: &mut Session, schema: &Schema) -> Result<Migrated, SchemaError> {
    let found = version(session.client(), schema).await?;
    if found == latest() {
        return Ok(Migrated { from: found, to: found });
    }
    let from = apply(session.client_mut(), schema).await.map_err(|error| match error {
        SchemaError::Database { source, .. } if is_denied(&source) => {
            let (schema, said) = (schema.as_str().to_owned(), chain(&source));
            SchemaRefusal::NotAllowed { schema, found, known: latest(), said }.into()
        }
        other => other,
    })?;
    Ok(Migrated { from, to: latest() })
}

/// A schema that the role may not use is passed over in the search path; when it is the only one, nothing is left to create in.
fn is_denied(error: &tokio_postgres::Error) -> bool {
    [SqlState::INSUFFICIENT_PRIVILEGE, SqlState::INVALID_SCHEMA_NAME].iter().any(|state| error.code() == Some(state))
}

/// Whether a run has ever been here. A schema that this program would have to migrate first is refused.
pub async fn is_there(session: &Session, schema: &Schema) -> Result<bool, SchemaError> {
    match version(session.client(), schema).await? {
        0 => Ok(false),
        found if found == latest() => Ok(true),
        found => Err(SchemaRefusal::Behind { schema: schema.as_str().to_owned(), found, known: latest() }.into()),
    }
}

/// The schema's version, checked against what this program knows.
async fn version(client: &impl GenericClient, schema: &Schema) -> Result<i32, SchemaError> {
    let there = "SELECT c.relkind::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = $1 AND c.relname = 'ingest_schema'";
    let there = client.query_opt(there, &[&schema.as_str()]).await.map_err(doing("looking for the schema"))?;
    let Some(there) = there else { return Ok(0) };
    let foreign = || SchemaRefusal::Foreign { schema: schema.as_str().to_owned(), tables: "ingest_schema".to_owned() };
    if there.get::<_, &str>(0) != "r" {
        return Err(foreign().into());
    }
    // Qualified: a schema that the role may not use is passed over in the search path without a word.
    let applied = format!("SELECT version, checksum FROM {}.ingest_schema ORDER BY version", schema.quoted());
    let applied = client.query(&applied, &[]).await;
    let applied = match applied {
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_COLUMN) => return Err(foreign().into()),
        other => other.map_err(doing("reading the schema's version"))?,
    };
    let schema = || schema.as_str().to_owned();
    for (row, expected) in applied.iter().zip(1..) {
        // Another type, or a NULL: a table of that name that somebody else made.
        let (Ok(version), Ok(checksum)) = (row.try_get::<_, i32>(0), row.try_get::<_, String>(1)) else {
            return Err(foreign().into());
        };
        if version > latest() {
            return Err(SchemaRefusal::TooNew { schema: schema(), found: version, known: latest() }.into());
        }
        if version != expected || checksum != self::checksum(MIGRATIONS[expected as usize - 1]) {
            return Err(SchemaRefusal::Changed { schema: schema(), version }.into());
        }
    }
    Ok(applied.len() as i32)
}

/// All missing steps in one transaction, whose first statement is the lock: two starters apply them once. The version that was found
/// under the lock.
async fn apply(client: &mut Client, schema: &Schema) -> Result<i32, SchemaError> {
    let transaction = client.transaction().await.map_err(doing("beginning the migration"))?;
    let run = async |sql: &str, what| transaction.batch_execute(sql).await.map_err(doing(what));
    run("SET LOCAL lock_timeout = '60s'", "waiting for the migration lock").await?;
    let key = LockKey::migrations().get();
    let lock = transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&key]).await;
    lock.map_err(doing("waiting for the migration lock"))?;

    let from = version(&transaction, schema).await?;
    if from == 0 {
        prepare_empty(&transaction, schema).await?;
    }
    // Nothing else is in the path while tables are made, so that they can land nowhere else, least of all in pg_temp.
    run(&format!("SET LOCAL search_path = {}", schema.quoted()), "entering the schema").await?;
    for (number, sql) in (1..).zip(MIGRATIONS).skip(from as usize) {
        run(sql, "migrating the schema").await?;
        let record = "INSERT INTO ingest_schema (version, checksum, program) VALUES ($1, $2, $3)";
        let program = env!("CARGO_PKG_VERSION");
        let recorded = transaction.execute(record, &[&number, &checksum(sql), &program]).await;
        recorded.map_err(doing("recording the migration"))?;
        tracing::info!(version = number, schema = schema.as_str(), "migrated");
    }
    transaction.commit().await.map_err(doing("committing the migration"))?;
    Ok(from)
}

/// The schema and the table of versions, unless somebody else's tables are there.
async fn prepare_empty(client: &impl GenericClient, schema: &Schema) -> Result<(), SchemaError> {
    let taken = "SELECT string_agg(c.relname, ', ' ORDER BY c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = $1 AND c.relname::text = ANY($2)";
    let taken = client.query_one(taken, &[&schema.as_str(), &OUR_TABLES]).await;
    if let Some(tables) = taken.map_err(doing("looking for foreign tables"))?.get::<_, Option<String>>(0) {
        let schema = schema.as_str().to_owned();
        // The table of versions has been looked at: it is as we make it, and empty.
        let ours = tables.split(", ").any(|table| table == "ingest_schema");
        let refusal =
            if ours { SchemaRefusal::Forgotten { schema } } else { SchemaRefusal::Foreign { schema, tables } };
        return Err(refusal.into());
    }
    // IF NOT EXISTS asks for the right to create even when there is nothing to create.
    let there = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)";
    let there = client.query_one(there, &[&schema.as_str()]).await;
    if !there.map_err(doing("looking for the schema"))?.get::<_, bool>(0) {
        let create = format!("CREATE SCHEMA {}", schema.quoted());
        client.batch_execute(&create).await.map_err(doing("creating the schema"))?;
    }
    let table = format!(
        "CREATE TABLE {}.ingest_schema (version integer PRIMARY KEY, checksum text NOT NULL, program text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now())",
        schema.quoted()
    );
    client.batch_execute(&table).await.map_err(doing("creating the table of versions"))
}

fn checksum(sql: &str) -> String {
    hex::encode(Sha256::digest(sql))
}
