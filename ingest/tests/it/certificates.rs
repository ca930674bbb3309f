//! The certificates that the image brings along: they are what the README says, they can be read, and they do not run out unnoticed.

use std::time::{Duration, SystemTime};

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use sha2::{Digest, Sha256};

const BUNDLE: &str = include_str!("../../certs/rds-global-bundle.pem");
const README: &str = include_str!("../../certs/README.md");
const WARN_BEFORE: Duration = Duration::from_secs(180 * 24 * 60 * 60);

fn certificates() -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(BUNDLE.as_bytes()).map(Result::unwrap).collect()
}

#[test]
fn the_bundle_is_the_one_whose_source_is_written_down() {
    let checksum = hex::encode(Sha256::digest(BUNDLE));
    assert!(README.contains(&checksum), "certs/README.md does not name the bundle's SHA-256, {checksum}");
    let mut roots = RootCertStore::empty();
    let certificates = certificates();
    assert!(README.contains(&format!("{} certificates", certificates.len())), "{}", certificates.len());
    for certificate in certificates {
        roots.add(certificate).unwrap();
    }
    // Each region has one authority for each kind of key.
    for kind in ["RSA2048 G1", "RSA4096 G1", "ECC384 G1"] {
        assert!(BUNDLE.contains(&format!("# Amazon RDS ap-northeast-2 Root CA {kind}\n")), "{kind}");
    }
}

#[test]
fn the_image_has_the_bundle_and_trusts_it() {
    let dockerfile = include_str!("../../../Dockerfile");
    let (_, image) = dockerfile.split_once("FROM scratch").unwrap();
    assert!(image.contains("\nCOPY ingest/certs/rds-global-bundle.pem /rds-global-bundle.pem\n"));
    assert!(image.contains("\nENV INGEST_DB_CA=/rds-global-bundle.pem\n"));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/certs/rds-global-bundle.pem").to_owned();
    let read = |name: &str| match name {
        "DATABASE_URL" => Some("postgres://u:p@db.example.ap-northeast-2.rds.amazonaws.com/d".to_owned()),
        "INGEST_DB_CA" => Some(path.clone()),
        _ => None,
    };
    assert!(ingest::config::Database::read(&read).is_ok());
}

#[test]
fn no_certificate_in_use_runs_out_within_half_a_year() {
    let soon = SystemTime::now() + WARN_BEFORE;
    let names = BUNDLE.lines().filter_map(|line| line.strip_prefix("# "));
    for (name, certificate) in names.zip(certificates()) {
        let end = not_after(&certificate);
        assert!(
            humantime::parse_rfc3339(&end).unwrap() > soon,
            "{name} expires at {end}. Make ingest/certs/rds-global-bundle.pem anew from Amazon's current bundle, as \
             ingest/certs/README.md says, drop what has expired, release an image, and roll it out before that day."
        );
    }
}

/// The end of a certificate's validity, as RFC 3339.
fn not_after(certificate: &[u8]) -> String {
    let (_, certificate) = element(certificate).0;
    let (_, mut rest) = element(certificate).0;
    // version, serialNumber, signature, issuer; then validity.
    for _ in 0..4 {
        rest = element(rest).1;
    }
    let (_, validity) = element(rest).0;
    let (tag, time) = element(element(validity).1).0;
    let time = std::str::from_utf8(time).unwrap();
    // UTCTime has two digits of the year, and ends in 2049.
    let time = if tag == 0x17 { format!("20{time}") } else { time.to_owned() };
    let part = |range: std::ops::Range<usize>| &time[range];
    format!("{}-{}-{}T{}:{}:{}Z", part(0..4), part(4..6), part(6..8), part(8..10), part(10..12), part(12..14))
}

/// The first DER element: its tag and contents; and what follows it.
fn element(der: &[u8]) -> ((u8, &[u8]), &[u8]) {
    let (tag, first) = (der[0], der[1] as usize);
    let (length, start) = if first < 0x80 {
        (first, 2)
    } else {
        let bytes = first & 0x7f;
        (der[2..2 + bytes].iter().fold(0, |length, byte| length << 8 | *byte as usize), 2 + bytes)
    };
    ((tag, &der[start..start + length]), &der[start + length..])
}
