# syntax=docker/dockerfile:1
# The image of the job. Only `ingest` is built: no AWS SDK is compiled, and nothing of `deploy` is inside.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
# Static glibc: the program runs in an empty image and resolves names by /etc/resolv.conf, which the platform provides.
RUN RUSTFLAGS="-C target-feature=+crt-static" \
    cargo build --release --locked -p ingest --target "$(rustc -vV | sed -n 's/^host: //p')" \
    && install -D -m 0555 target/*/release/ingest /out/ingest && mkdir -p /out/tmp

FROM scratch
COPY --from=build /out/ingest /ingest
# The public authorities of RDS: nothing can be mounted on Fargate. Set INGEST_DB_CA to nothing for the public roots.
COPY ingest/certs/rds-global-bundle.pem /rds-global-bundle.pem
ENV INGEST_DB_CA=/rds-global-bundle.pem
# A snapshot of more than 64 MiB goes to a file without a name here; a month of libraries has 5.
COPY --from=build --chown=65532:65532 /out/tmp /tmp
# Not root, and not a user that any host is likely to have.
USER 65532:65532
# Exec form: the program is PID 1 and gets SIGTERM itself. A task's command override replaces only the arguments after it.
ENTRYPOINT ["/ingest"]
CMD ["--help"]
