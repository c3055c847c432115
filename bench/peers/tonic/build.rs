fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::var("WEIR_PROTO")?;
    tonic_prost_build::configure()
        .build_client(false)
        .compile_protos(&[format!("{folder}/runtime.proto")], &[folder])?;
    Ok(())
}
