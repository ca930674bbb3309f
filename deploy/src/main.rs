//! The binary: everything is in the library, so that tests reach it.

fn main() -> std::process::ExitCode {
    deploy::main(std::env::args_os()).into()
}
