// Every route of the Runtime Contract, with a client that progenitor makes while this compiles.
//
//     curl -s 127.0.0.1:8080/openapi.json > openapi.json
//     python3 openapi_3_0.py openapi.json > openapi-3.0.json     # progenitor reads OpenAPI 3.0
//     cp client.rs src/main.rs && cargo run -- http://127.0.0.1:8080
use futures::TryStreamExt;
use serde_json::{from_value, json};

progenitor::generate_api!(spec = "openapi-3.0.json", interface = Builder);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("which server?")?;
    // With AGENT_AUTH_TOKEN: Client::new_with_client, whose headers have authorization.
    let client = Client::new(&url);

    println!("getHealth {}", client.get_health().send().await?.status);
    println!("getHealthHead {}", client.get_health_head().send().await?.status().as_u16());
    println!("getOpenAPI {}", client.get_open_api().send().await?.openapi);
    println!("getOpenAPIHead {}", client.get_open_api_head().send().await?.status().as_u16());
    println!("getAgentCard {}", client.get_agent_card().send().await?.name);
    println!("getAgentCardHead {}", client.get_agent_card_head().send().await?.status().as_u16());

    let trip: types::InvokeRequest = from_value(json!({"input": "two days in Kyoto"}))?;
    let stream = client.stream_agent().body(trip).send().await?.into_inner();
    let pieces: Vec<_> = stream.into_inner().try_collect().await?;
    let text = String::from_utf8(pieces.concat())?;
    println!("streamAgent {}", text.trim_end().lines().last().unwrap_or_default());

    // The demo asks a person before it books.
    let booking: types::InvokeRequest = from_value(json!({"input": "book the trip"}))?;
    let turn = client.invoke_agent().body(booking).send().await?.into_inner();
    println!("invokeAgent {}", turn.metadata.approval.ok_or("it does not ask")?.question);
    let answer: types::ResumeRequest =
        from_value(json!({"thread_id": turn.session_id, "human_input": "yes"}))?;
    let output = client.resume_agent().body(answer).send().await?.into_inner().output;
    println!("resumeAgent {}", json!(output).as_str().unwrap_or_default());
    Ok(())
}
