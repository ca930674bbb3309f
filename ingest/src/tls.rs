//! TLS for both connections: rustls with ring, certificates always verified.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Trusts the public roots, which are compiled in: the image has no file system to look for them.
pub fn public() -> ClientConfig {
    with(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() })
}

/// Trusts the certificates in a PEM text and nothing else. The error is a sentence about the text.
pub fn only(pem: &[u8]) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|_| "is no PEM text")?;
        roots.add(certificate).map_err(|error| format!("has a certificate that cannot be read: {error}"))?;
    }
    if roots.is_empty() {
        return Err("contains no certificate".to_owned());
    }
    Ok(with(roots))
}

fn with(roots: RootCertStore) -> ClientConfig {
    // Never ClientConfig::builder(): it panics when a second crypto provider is compiled in.
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring supports the default protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_bad_bundle_is_a_sentence() {
        assert_eq!(super::only(b"").unwrap_err(), "contains no certificate");
        let garbage = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(super::only(garbage).unwrap_err().starts_with("has a certificate that cannot be read"));
    }
}
