//! TLS to a real PostgreSQL: the certificate is verified, and so is the name in it.

use crate::world::World;
use geuneul::Outcome;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rehearsal::postgres::{Certificate, Cluster, Setup};
use rehearsal::snapshot::generate;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn certificate(authority: &Authority, name: &str) -> Certificate {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    Certificate { certificate: certificate.pem(), key: key.serialize_pem() }
}

#[test]
#[ignore = "needs a PostgreSQL that was built with TLS"]
fn only_the_right_name_from_the_right_authority() {
    let (ours, foreign) = (authority(), authority());
    let cluster =
        Cluster::start_as(&Setup { certificate: Some(certificate(&ours, "localhost")), ..Setup::default() }).unwrap();
    let database = cluster.database();
    let mut world = World::new(generate(1, 30));
    let url = |host: &str, mode: &str| {
        format!("postgres://postgres@{host}:{}/{}?sslmode={mode}", cluster.port(), database.name())
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, ours.pem()).unwrap();
    let file = file.to_str().unwrap().to_owned();

    // The bundle as a file, and as text: nothing can be mounted on Fargate.
    for (ca, inserted) in [(&file, 30), (&ours.pem(), 0)] {
        world.set("DATABASE_URL", &url("localhost", "verify-full"));
        world.set("INGEST_DB_CA", ca);
        assert_eq!(world.mirror().inserted, inserted);
    }
    assert_eq!(database.number("SELECT count(*) FROM ingest.places"), 30);
    // The cancel request of a signal goes over TLS too.
    let gate = world.upstream.hold_after(0);
    let run = world.start();
    gate.wait_for_request();
    assert_eq!(
        database.number("SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND application_name LIKE 'ingest library run=%'"),
        1
    );
    run.signal("TERM");
    run.end().expect(Outcome::Interrupted);
    drop(gate);

    for (what, host, mode, ca) in [
        ("another authority", "localhost", "verify-full", foreign.pem()),
        ("the public roots", "localhost", "require", String::new()),
        ("another name", "127.0.0.1", "verify-full", ours.pem()),
    ] {
        world.set("DATABASE_URL", &url(host, mode));
        world.set("INGEST_DB_CA", &ca);
        let finished = world.month();
        let error = finished.expect(Outcome::Misconfigured).error.unwrap();
        assert_eq!(error.code, "database_tls", "{what}: {error:?}");
        assert!(error.message.contains("certificate"), "{what}: {error:?}");
        assert!(finished.stderr.contains("set INGEST_DB_CA to the authority"), "{what}");
    }
}
