//! Resources of a pool: whole sets, additions, and calls on one resource. Their data is taken as it
//! was sent, and no refusal repeats it.

use serde::Serializer;

use super::fields::{self, Value, document};
use super::forms::{Content, Form, List, Name, Text, ValueKind, Whole};
use super::lines::{LineRead, read_line, read_lines};
use super::object::{Call, SentBody, bounded_bodies, object};
use super::parameters::Queried;
use super::paths::{ResourcePath, pool_path, resource_path};
use crate::at::At;
use crate::bounded::{Bounded, COUNT, SetIds};
use crate::bounds::{ERROR_BYTES_MAX, ITEMS_MAX, RESOURCE_DATA_BYTES_MAX, TAGS_MAX};
use crate::json::Kind;
use crate::names::{PoolName, ResourceId, Tag};
use crate::refusal::Refusal;
use crate::requests::{AddResources, BanResource, CoolResource, PatchResource, SyncResources};
use crate::secret::Json;
use crate::sentences::{BodyRefusal, SetPlace};
use crate::settings::NewResource;

object! {
    ResourceFields "a resource" "NewResource"
    answered &["state", "reason", "in_use", "until", "retiring", "holders", "uses", "last_used_at"];
    whole NewResource;
    fields {
        id: ResourceId = Name(ResourceId::parse, Some(ResourceId::BYTES_MAX)), required "\"id\": \"13800000000\"",
            "The id of the resource, 1 to 256 bytes; it must not stand twice in a whole set.";
        data: Json = Content(RESOURCE_DATA_BYTES_MAX), default,
            "What its holder gets and nobody else is shown: any JSON, at most 64 KiB; null if absent.";
        tags: Vec<Tag> = Tags, default, "Words by which a need asks for it, at most 16.";
        slots: u32 = Whole(COUNT), or 1,
            "How many leases may hold it at once, 1 to 1,000,000,000; 1 if absent.";
    }
}

object! {
    ResourcePatchFields "a patch of a resource" "ResourcePatch"
    answered &["id", "state", "reason", "in_use", "until", "retiring", "holders", "uses"];
    patch PatchResource(pool: PoolName, resource: ResourceId);
    fields {
        data: Json = Content(RESOURCE_DATA_BYTES_MAX), nullable,
            "The new data, at most 64 KiB, for the next lease; null is null.";
        tags: Vec<Tag> = Tags, nullable,
            "The new tags, at most 16, which replace all of the old ones; null is none.";
        slots: u32 = Whole(COUNT), nullable, "The new number of leases that may hold it at once; null is 1.";
    }
}

object! {
    BanFields "a ban" "Ban"
    call BanResource(pool: PoolName, resource: ResourceId);
    fields {
        reason: String = Text(ERROR_BYTES_MAX), optional, "Why it is banned, for people; at most 8 KiB.";
    }
}

/// At most 16 tags; a repeated tag counts once.
struct Tags;

const TAG_LIST: List<Name<Tag>> = List(0..=TAGS_MAX, Name(Tag::parse, Some(Tag::BYTES_MAX)));

impl Form<Vec<Tag>> for Tags {
    fn read(&self, value: Value<'_, '_>) -> Result<Vec<Tag>, Refusal> {
        let mut tags: Vec<Tag> = Vec::new();
        for tag in TAG_LIST.read(value)? {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        Ok(tags)
    }
    fn check(&self, value: &Vec<Tag>, at: &At<'_>) -> Result<(), Refusal> {
        TAG_LIST.check(value, at)
    }
    fn write<S: Serializer>(&self, value: &Vec<Tag>, to: S) -> Result<S::Ok, S::Error> {
        TAG_LIST.write(value, to)
    }
    fn kind(&self) -> ValueKind {
        Form::<Vec<Tag>>::kind(&TAG_LIST)
    }
}

/// Reads `PUT /v1/pools/{name}/resources` with an array of any length, the whole set.
pub fn sync_resources<K: AsRef<str>, V: AsRef<str>>(
    name: &str,
    query: &[(K, V)],
    body: &[u8],
) -> Result<SyncResources, Refusal> {
    let request = sync_resources_from_lines(name, query, Vec::new())?;
    let document = document(body)?;
    let body = Value::body(&document);
    if body.node.kind() != Kind::Array {
        return Err(body.refuse(BodyRefusal::NotASet { noun: body.node.kind().noun().into() }));
    }
    let (mut ids, mut index) = (SetIds::default(), 0);
    let resources = body.each_indexed(0..=usize::MAX, |item| {
        let one = ResourceFields.read(item)?;
        ids.once(one.id.clone(), SetPlace::Item(index), &At::Member(&item.at, "id"))?;
        index += 1;
        Ok(one)
    })?;
    Ok(SyncResources { resources, ..request })
}

/// The same with a set whose lines [`ResourceLines`] has read one by one.
pub fn sync_resources_from_lines<K: AsRef<str>, V: AsRef<str>>(
    name: &str,
    query: &[(K, V)],
    resources: Vec<NewResource>,
) -> Result<SyncResources, Refusal> {
    SyncResources::of_query((pool_path(name)?, resources), query)
}

/// Reads `POST /v1/pools/{name}/resources` with one object, or an array of 1 to 1,000.
pub fn add_resources(name: &str, body: &[u8]) -> Result<AddResources, Refusal> {
    let pool = pool_path(name)?;
    let document = document(body)?;
    let body = Value::body(&document);
    let resources = match body.node.kind() {
        Kind::Array => body.each_indexed(1..=ITEMS_MAX, |item| ResourceFields.read(item))?,
        _ => vec![ResourceFields.read(body)?],
    };
    Ok(AddResources { pool, resources })
}

/// The same with lines of NDJSON, 1 to 1,000 resources.
pub fn add_resources_from_lines(
    name: &str,
    resources: Vec<NewResource>,
) -> Result<AddResources, Refusal> {
    let pool = pool_path(name)?;
    if !(1..=ITEMS_MAX).contains(&resources.len()) {
        let (sent, most) = (resources.len(), ITEMS_MAX);
        return Err(Refusal::from(BodyRefusal::ResourcesOutside { sent, most }).at(""));
    }
    Ok(AddResources { pool, resources })
}

/// Reads one line of NDJSON, of at most 512 KiB. The caller counts the lines.
pub fn resource_line(line: &[u8]) -> Result<NewResource, Refusal> {
    let document = fields::line(line)?;
    ResourceFields.read(Value::body(&document))
}

/// Reads a whole set in NDJSON, and keeps its ids to refuse repeats.
#[derive(Debug, Default)]
pub struct ResourceLines {
    ids: SetIds<ResourceId>,
}

impl ResourceLines {
    /// Reads one numbered line of at most 512 KiB; a refusal has the number.
    pub fn read(&mut self, line: (usize, LineRead<'_>)) -> Result<NewResource, Refusal> {
        read_line(line, |number, line| self.read_whole(number, line))
    }

    fn read_whole(&mut self, number: usize, line: &[u8]) -> Result<NewResource, Refusal> {
        let one = resource_line(line)?;
        self.ids.once(one.id.clone(), SetPlace::Line(number), &At::Member(&At::Body, "id"))?;
        Ok(one)
    }

    /// Reads a whole body. Blank lines are counted and skipped.
    pub fn read_all(mut self, body: &[u8]) -> Result<Vec<NewResource>, Refusal> {
        read_lines(body, |line| self.read(line))
    }
}
/// Reads the body of `PATCH /v1/pools/{name}/resources/{id}`; `null` resets a field to its default.
pub fn patch_resource(path: ResourcePath<'_>, body: &[u8]) -> Result<PatchResource, Refusal> {
    PatchResource::of_body(resource_path(path)?, body)
}

/// Reads the body of `POST …/resources/{id}/cool`: `{"for"|"until"}`.
pub fn cool_resource(path: ResourcePath<'_>, body: &[u8]) -> Result<CoolResource, Refusal> {
    CoolResource::of_body(resource_path(path)?, body)
}

/// Reads the body of `POST …/resources/{id}/ban`: nothing, or `{"reason"}`.
pub fn ban_resource(path: ResourcePath<'_>, body: &[u8]) -> Result<BanResource, Refusal> {
    BanResource::of_optional_body(resource_path(path)?, body)
}

impl Bounded for SyncResources {
    fn within_bounds(&self) -> Result<(), Refusal> {
        self.query_within_bounds()?;
        let mut ids = SetIds::default();
        for (index, one) in self.resources.iter().enumerate() {
            let at = At::Item(&At::Body, index);
            let once = ids.once(&one.id, SetPlace::Item(index), &At::Member(&at, "id"));
            once.and_then(|()| one.check_body(&at)).map_err(|no| no.item(index))?;
        }
        Ok(())
    }
}

impl Bounded for AddResources {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let (sent, most) = (self.resources.len(), ITEMS_MAX);
        if !(1..=most).contains(&sent) {
            return Err(At::Body.refuse(BodyRefusal::ResourcesOutside { sent, most }));
        }
        for (index, one) in self.resources.iter().enumerate() {
            one.check_body(&At::Item(&At::Body, index)).map_err(|no| no.item(index))?;
        }
        Ok(())
    }
}

bounded_bodies! { PatchResource BanResource }
