//! See the library.

fn main() -> std::process::ExitCode {
    ingest::main()
}
