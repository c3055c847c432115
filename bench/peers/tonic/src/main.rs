//! tonic: the driver's turns from Rust's gRPC server, to compare with.
//!
//!     tonic-peer PORTS_FILE
//!
//! One thread (the runtime's own single-threaded flavour, the best on one core), link-time
//! optimization, windows that a burst fits into, no compression. The events of the unpaced turn
//! are built once. It checks no token, keeps no session and writes nothing; comparisons favour it.

use std::pin::Pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

pub mod pb {
    tonic::include_proto!("crawbl.agentruntime.v1");
}
use pb::agent_runtime_server::{AgentRuntime, AgentRuntimeServer};
use pb::converse_event::Event;
use pb::{ChunkEvent, ConverseEvent, ConverseRequest, DoneEvent, Turn, UsageEvent};

const CHUNKS: usize = 64;
const TAIL: &str = " the water goes on over the weir, to the mill, to sea...";
const PACE: Duration = Duration::from_millis(20);
const QUEUE: usize = 128; // events between a turn and its connection

fn event(event: Event) -> ConverseEvent {
    ConverseEvent { event: Some(event) }
}

fn chunk(text: String) -> ConverseEvent {
    event(Event::Chunk(ChunkEvent { agent_id: "manager".into(), text }))
}

fn usage() -> ConverseEvent {
    event(Event::Usage(UsageEvent {
        agent_id: "manager".into(),
        model: "script".into(),
        prompt_tokens: 10,
        completion_tokens: 64,
        total_tokens: 74,
        ..Default::default()
    }))
}

fn done(text: String) -> ConverseEvent {
    let turn = Turn { agent_id: "manager".into(), text, ..Default::default() };
    event(Event::Done(DoneEvent { model: "script".into(), turns: vec![turn], ..Default::default() }))
}

fn burst() -> Vec<ConverseEvent> {
    let texts: Vec<String> = (0..CHUNKS).map(|n| format!("{n:08}{TAIL}")).collect();
    let whole = texts.concat();
    let mut events: Vec<_> = texts.into_iter().map(chunk).collect();
    events.extend([usage(), done(whole)]);
    events
}

type Answer = Result<ConverseEvent, Status>;
type Sender = mpsc::Sender<Answer>;

/// One chunk each `PACE`, with its number and when it was sent. False when the caller left.
async fn send_paced(to: &Sender, count: usize) -> bool {
    let mut whole = String::new();
    let mut due = tokio::time::Instant::now();
    for n in 0..count {
        if n > 0 {
            due += PACE;
            tokio::time::sleep_until(due).await;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        let text = format!("{:.<64}", format!("{n:08} {now:019}"));
        whole.push_str(&text);
        if to.send(Ok(chunk(text))).await.is_err() {
            return false;
        }
    }
    to.send(Ok(usage())).await.is_ok() && to.send(Ok(done(whole))).await.is_ok()
}

async fn send_burst(to: &Sender, burst: &[ConverseEvent]) -> bool {
    for event in burst {
        if to.send(Ok(event.clone())).await.is_err() {
            return false;
        }
    }
    true
}

struct Runtime {
    burst: std::sync::Arc<Vec<ConverseEvent>>,
}

#[tonic::async_trait]
impl AgentRuntime for Runtime {
    type ConverseStream = Pin<Box<dyn Stream<Item = Answer> + Send>>;

    async fn converse(
        &self,
        request: Request<Streaming<ConverseRequest>>,
    ) -> Result<Response<Self::ConverseStream>, Status> {
        let mut requests = request.into_inner();
        let (to, events) = mpsc::channel(QUEUE);
        let burst = self.burst.clone();
        tokio::spawn(async move {
            while let Some(Ok(request)) = requests.next().await {
                let paced = request.message.strip_prefix("paced ").and_then(|n| n.parse().ok());
                let sent = match paced {
                    Some(count) => send_paced(&to, count).await,
                    None => send_burst(&to, &burst).await,
                };
                if !sent {
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(events))))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("tonic-peer: PORTS_FILE")?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    std::fs::write(&path, format!("{{\"grpc\": {port}}}\n"))?;
    let mut stop = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let incoming = TcpListenerStream::new(listener).map(|socket| {
        let socket = socket?;
        socket.set_nodelay(true)?;
        Ok::<_, std::io::Error>(socket)
    });
    tonic::transport::Server::builder()
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(16 << 20)
        .max_concurrent_streams(1 << 20)
        .add_service(AgentRuntimeServer::new(Runtime { burst: burst().into() }))
        .serve_with_incoming_shutdown(incoming, async move {
            stop.recv().await;
        })
        .await?;
    Ok(())
}
