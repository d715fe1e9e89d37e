//! Tenure as it is measured: straight on Redis, or by way of a server over HTTP (`--way http`).

mod lifecycle;
mod pipelined;
mod producer;
mod worker;

use std::sync::Arc;

use peers_gauge::{Call, Failed, Role};
use tenure::{Client, Namespace, QueueName, Remote, ServerUrl};
use tenure_engine_redis::link::Address;
use tenure_engine_redis::{Options, RedisEngine};

/// A client as a user would make it: of the server that listens there, or straight on the Redis.
fn client(call: &Call) -> Result<Client, Failed> {
    if call.way == "http" {
        let (host, prefix) = ("127.0.0.1".to_owned(), String::new());
        let url = ServerUrl { tls: false, host, port: call.port, prefix };
        return Ok(Client::new(Arc::new(Remote::open(&url, None)?), Namespace::main()));
    }
    let engine = RedisEngine::open(Options::new(Address::parse(&call.url())?))?;
    Ok(Client::new(Arc::new(engine), Namespace::main()))
}

fn queue() -> Result<QueueName, Failed> {
    Ok(QueueName::parse("bench")?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let call = Call::read()?;
    let client = client(&call)?;
    match call.role {
        Role::Push | Role::PushFree => producer::push(&client, &call).await,
        Role::PushKeyed | Role::PushBlocked => producer::push_keyed(&client, &call).await,
        Role::PushThree => producer::push_three(&client, &call).await,
        Role::Single | Role::Steady => producer::one_by_one(&client, &call).await,
        Role::Later => producer::later(&client, &call).await,
        Role::Drain | Role::Listen | Role::DrainKeyed | Role::DrainFree => {
            worker::work(&client, &call).await
        }
        Role::Lifecycle => lifecycle::run(&client, &call).await,
    }
}
