//! Tenure as measured: a server inside the program, on Redis or a folder (`--way folder`), or a separate one over HTTP
//! (`--way http`).

mod lifecycle;
mod pipelined;
mod producer;
mod worker;

use std::sync::Arc;

use peers_gauge::{Call, Failed, Role};
use tenure::core::requests::GetStats;
use tenure::{Client, Namespace, QueueName, Remote, ServerUrl};
use tenure_server::Server;

/// A client as a user would make it, and the server inside this program, if it has one.
async fn connected(call: &Call) -> Result<(Client, Option<Server>), Failed> {
    if call.way == "http" {
        let (host, prefix) = ("127.0.0.1".to_owned(), String::new());
        let url = ServerUrl { tls: false, host, port: call.port, prefix };
        let remote = Remote::open(&url, None)?;
        return Ok((Client::new(Arc::new(remote), Namespace::main()), None));
    }
    let store = if call.way == "folder" { call.folder_url()? } else { call.url() };
    let server = Server::open(&store).listen("127.0.0.1:0").start().await?;
    let client = server.client();
    // Answered once this server leads the store.
    client.run(GetStats).await?;
    Ok((client, Some(server)))
}

fn queue() -> Result<QueueName, Failed> {
    Ok(QueueName::parse("bench")?)
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let call = Call::read()?;
    let (client, server) = connected(&call).await?;
    let done = match call.role {
        Role::Push | Role::PushFree => producer::push(&client, &call).await,
        Role::PushKeyed | Role::PushBlocked => producer::push_keyed(&client, &call).await,
        Role::PushThree => producer::push_three(&client, &call).await,
        Role::Single | Role::Steady => producer::one_by_one(&client, &call).await,
        Role::Later => producer::later(&client, &call).await,
        Role::Drain | Role::Listen | Role::DrainKeyed | Role::DrainFree => {
            worker::work(&client, &call).await
        }
        Role::Lifecycle => lifecycle::run(&client, &call).await,
    };
    if let Some(server) = server {
        server.close().await;
    }
    done
}
