"""A caller brings a whole conversation: what the model's vendor then receives."""
import base64
import json
import os
import shutil
import subprocess

import harness
import nimi_client as nimi
import prompts
import pytest
import vendors
from nimi_client import common, pb

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n-a-picture-").decode()
DATA_URL = f"data:image/png;base64,{PNG}"
WEB_URL = "https://pictures.example/cat.png"


# --- what a vendor received, the same for all of them ----------------------------------------


def picture_of(part):
    """Of a part in any vendor's form: ("image", where)."""
    if "image_url" in part:
        url = part["image_url"]
        return ("image", url["url"] if isinstance(url, dict) else url)
    if "source" in part:
        source = part["source"]
        return ("image", source.get("url") or f"data:{source['media_type']};base64,{source['data']}")
    if "inlineData" in part:
        data = part["inlineData"]
        return ("image", f"data:{data['mimeType']};base64,{data['data']}")
    return ("image", part["fileData"]["fileUri"])


def part_of(part):
    if "text" in part:
        return part["text"]
    if part.get("type") == "tool_use":
        return ("call", part["name"], part["input"])
    if part.get("type") == "tool_result":
        return ("result", json.loads(part["content"]))
    if "functionCall" in part:
        return ("call", part["functionCall"]["name"], part["functionCall"]["args"])
    if "functionResponse" in part:
        return ("result", part["functionResponse"]["response"])
    return picture_of(part)


def pieces(role, content):
    parts = [{"text": content}] if isinstance(content, str) else content or []
    return [(role, part_of(part)) for part in parts]


def told_openai(body):
    told = []
    for message in body["messages"]:
        if message["role"] == "tool":
            told.append(("user", ("result", json.loads(message["content"]))))
            continue
        told += pieces(message["role"], message["content"])
        for call in message.get("tool_calls", []):
            function = call["function"]
            told.append(("assistant", ("call", function["name"], json.loads(function["arguments"]))))
    return told


def told_responses(body):
    told = [("system", body["instructions"])] if "instructions" in body else []
    for item in body["input"]:
        if item["type"] == "function_call":
            told.append(("assistant", ("call", item["name"], json.loads(item["arguments"]))))
        elif item["type"] == "function_call_output":
            told.append(("user", ("result", json.loads(item["output"]))))
        elif item["type"] == "message":  # the model's own come back as they were
            told += pieces(item.get("role", "assistant"), item["content"])
    return told


def told_anthropic(body):
    told = [("system", block["text"]) for block in body.get("system", [])]
    for message in body["messages"]:
        told += pieces(message["role"], message["content"])
    return told


def told_gemini(body):
    told = pieces("system", body.get("systemInstruction", {}).get("parts"))
    for content in body["contents"]:
        told += pieces({"model": "assistant"}.get(content["role"], "user"), content["parts"])
    return told


TOLD = {
    "openai": told_openai,
    "openai-responses": told_responses,
    "anthropic": told_anthropic,
    "gemini": told_gemini,
}


def told(kind, asked):
    """[(role, text or picture or call or result)], without the agent's own instructions."""
    found = TOLD[kind](asked.body)
    assert found.pop(0) == ("system", "You lead.")
    return found


def asked_of(models):
    return [asked for asked in models.asked if asked.raw]


def invoke(weir, **body):
    with weir.http() as http:
        return http.post("/invoke", json=body)


def output(answer):
    assert answer.status_code == 200, answer.text
    return answer.json()["output"]


def refusal(answer, status=422):
    assert answer.status_code == status, answer.text
    return answer.json()["error"]["message"]


def user(content):
    return {"role": "user", "content": content}


def assistant(content, **more):
    return {"role": "assistant", "content": content, **more}


# --- Runtime v1: every role, part, call and result -------------------------------------------

LOOK = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "sky"}'}}

LISTS = {
    "openai": [
        {"role": "system", "content": "Be brief."},
        user("My name is Zelda."),
        assistant(None, tool_calls=[LOOK]),
        {"role": "tool", "tool_call_id": "c1", "content": "blue"},
        assistant("Hello Zelda."),
        user([{"type": "text", "text": "Who"}, {"type": "text", "text": "am I?"}]),
    ],
    "langchain": [
        {"type": "system", "content": "Be brief."},
        {"type": "human", "content": "My name is Zelda."},
        {
            "type": "ai",
            "content": "",
            "tool_calls": [{"name": "look", "args": {"at": "sky"}, "id": "c1", "type": "tool_call"}],
        },
        {"type": "tool", "content": "blue", "tool_call_id": "c1"},
        {"type": "ai", "content": "Hello Zelda."},
        {"type": "human", "content": "Who\n\nam I?"},
    ],
}
SHOWN = [
    ("system", "Be brief."),
    ("user", "My name is Zelda."),
    ("assistant", ("call", "look", {"at": "sky"})),
    ("user", ("result", {"result": "blue"})),
    ("assistant", "Hello Zelda."),
    ("user", "Who\n\nam I?"),
]


@pytest.mark.parametrize("form", LISTS)
def test_every_message_of_a_list_reaches_the_model(house, models, kind, form):
    weir = house()
    models.say(house.model, "one", "two", "three")
    messages = LISTS[form]
    for body in ({"messages": messages}, {"input": {"messages": messages}}, {"input": messages}):
        assert invoke(weir, **body).status_code == 200
        assert told(kind, asked_of(models)[-1]) == SHOWN


def test_pictures_reach_the_model_in_their_place(house, models, kind):
    weir = house()
    models.say(house.model, "a cat", "a cat")
    parts = [
        {"type": "text", "text": "What is"},
        {"type": "image_url", "image_url": {"url": DATA_URL}},
        {"type": "image", "source": {"type": "url", "url": WEB_URL}},
        {"type": "text", "text": "this?"},
    ]
    assert output(invoke(weir, session_id="p", messages=[user(parts)])) == "a cat"
    shown = [
        ("user", "What is"),
        ("user", ("image", DATA_URL)),
        ("user", ("image", WEB_URL)),
        ("user", "this?"),
    ]
    assert told(kind, asked_of(models)[-1]) == shown
    # the session remembers them, also behind a restart
    weir.restart()
    invoke(weir, session_id="p", input="Sure?")
    assert told(kind, asked_of(models)[-1]) == [
        *shown,
        ("assistant", "a cat"),
        ("user", "Sure?"),
    ]


def test_what_cannot_be_read_is_refused_with_its_place(house, models):
    weir = house()
    sound = {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}
    for messages, place in [
        ([], "messages is empty"),
        ([{"role": "narrator", "content": "x"}], "messages[0]: no role 'narrator'"),
        ([user([{"type": "text", "text": "a"}, sound])], "messages[0].content[1]: "),
        ([user("a"), {"role": "tool", "tool_call_id": "x", "content": ""}], "messages[1]: no call 'x'"),
        ([user("a"), assistant(None, tool_calls=[LOOK])], "messages[1].tool_calls[0]: "),
        ([user("a"), {"role": "system", "content": "b"}], "messages[1]: the last message"),
    ]:
        assert refusal(invoke(weir, messages=messages)).startswith(place)
    assert not asked_of(models)


def test_a_begun_reply_is_sent_or_refused(house, models, kind):
    weir = house()
    models.say(house.model, "Mississippi.")
    answer = invoke(weir, messages=[user("Name a river."), assistant("It is the")])
    if kind in ("anthropic", "openai"):  # the fake is no api.openai.com
        assert output(answer) == "Mississippi."
        assert told(kind, asked_of(models)[-1])[-1] == ("assistant", "It is the")
    else:
        assert refusal(answer).startswith("messages[1]: ")
        assert not asked_of(models)


def test_a_system_message_between_others_is_sent_or_refused(house, models, kind):
    weir = house()
    models.say(house.model, "yes", "yes")
    messages = [user("a"), assistant("b"), {"role": "system", "content": "s"}, user("c")]
    answer = invoke(weir, session_id="s", messages=messages)
    if kind.startswith("openai"):
        assert output(answer) == "yes"
        assert told(kind, asked_of(models)[-1])[2:] == [("system", "s"), ("user", "c")]
        return
    assert refusal(answer).startswith("messages[2]: ")
    events = vendors.stream(weir, messages)
    assert events.of("error") and "messages[2]: " in json.dumps(events.of("error"))
    assert not asked_of(models)
    assert output(invoke(weir, session_id="s", input="d")) == "yes"  # not poisoned


# --- sessions --------------------------------------------------------------------------------


def test_a_list_that_grows_is_shown_once(house, models, kind):
    weir = house()
    replies = ["one", "two", "three"]
    models.say(house.model, *replies)
    messages = [{"role": "system", "content": "Be brief."}]
    before = []
    for number, reply in enumerate(replies):
        messages.append(user(f"question {number}"))
        assert output(invoke(weir, session_id="s", messages=messages)) == reply
        shown = told(kind, asked_of(models)[-1])
        assert shown[: len(before)] == before
        assert shown == [(m["role"], m["content"]) for m in messages]
        before = shown
        messages.append(assistant(reply))
        if number == 1:
            weir.restart()


def test_a_list_without_a_common_past_is_appended_as_a_whole(house, models, kind):
    weir = house()
    models.say(house.model, "one", "two")
    invoke(weir, session_id="s", input="question 1")
    invoke(weir, session_id="s", messages=[user("other"), assistant("past"), user("question 2")])
    assert told(kind, asked_of(models)[-1]) == [
        ("user", "question 1"),
        ("assistant", "one"),
        ("user", "other"),
        ("assistant", "past"),
        ("user", "question 2"),
    ]


@pytest.mark.parametrize("kind", ["openai"], indirect=True)
def test_a_list_may_be_the_whole_conversation(house, models, kind):
    weir = house(http={"history": "caller"})
    models.say(house.model, "one", "two")
    invoke(weir, session_id="s", input="question 1")
    invoke(weir, session_id="s", messages=[user("other"), assistant("past"), user("question 2")])
    assert told(kind, asked_of(models)[-1]) == [
        ("user", "other"),
        ("assistant", "past"),
        ("user", "question 2"),
    ]


@pytest.mark.parametrize("kind", ["openai"], indirect=True)
def test_a_list_with_another_past_may_be_a_conflict(house, models, kind):
    weir = house(http={"history": "strict"})
    models.say(house.model, "one", "two")
    invoke(weir, session_id="s", input="question 1")
    fork = [user("other"), assistant("past"), user("question 2")]
    assert "past" in refusal(invoke(weir, session_id="s", messages=fork), 409)
    grown = [user("question 1"), assistant("one"), user("question 2")]
    assert output(invoke(weir, session_id="s", messages=grown)) == "two"


def packed(history, current):
    """dashboard/src/pages/playground.tsx, buildAgentInput()."""
    if not history:
        return current
    lines = [("User" if who == "user" else "Assistant") + f": {text}" for who, text in history]
    return "\n\n".join([*lines, f"User: {current}"])


def test_turns_that_the_dashboard_packs_are_read_once(house, models, kind):
    weir = house()
    replies = [f"reply {number}\n\nwith two paragraphs" for number in range(8)]
    models.say(house.model, *replies)
    history, session = [], None
    for number, reply in enumerate(replies):
        body = {"input": packed(history, f"question {number}"), "session_id": session}
        answer = invoke(weir, **{k: v for k, v in body.items() if v})
        assert output(answer) == reply
        session = answer.json()["session_id"]
        assert told(kind, asked_of(models)[-1]) == [*history, ("user", f"question {number}")]
        history += [("user", f"question {number}"), ("assistant", reply)]
    assert asked_of(models)[-1].raw.count(b"question 0") == 1


# --- beside the words ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["openai"], indirect=True)
def test_keys_beside_the_words_reach_the_model(house, models, kind):
    weir = house()
    models.say(house.model, "one", "two", "three")
    invoke(weir, input={"message": "hi", "customer_tier": "gold", "order_id": 77})
    block = 'hi\n\n{"customer_tier":"gold","order_id":77}'
    assert told(kind, asked_of(models)[-1]) == [("user", block)]
    state = {"messages": [user("hi")], "customer_tier": "gold"}
    invoke(weir, session_id="s", input=state)
    held = ("user", 'hi\n\n{"customer_tier":"gold"}')
    assert told(kind, asked_of(models)[-1]) == [held]
    state["messages"] += [assistant("two"), user("more")]
    invoke(weir, session_id="s", input=state)
    assert told(kind, asked_of(models)[-1]) == [
        held,
        ("assistant", "two"),
        ("user", 'more\n\n{"customer_tier":"gold"}'),
    ]


def test_an_empty_input_is_a_turn(house, models, kind):
    weir = house()
    models.say(house.model, "You said nothing.")
    assert output(invoke(weir, input="")) == "You said nothing."
    blank = "(no text)" if kind in ("anthropic", "gemini") else ""
    assert told(kind, asked_of(models)[-1]) == [("user", blank)]


@pytest.mark.parametrize("kind", ["openai"], indirect=True)
def test_an_output_schema_shapes_the_answer(house, models, kind):
    weir = house()
    models.say(house.model, "blue", '{"colour":"blue"}')
    schema = {
        "type": "object",
        "properties": {"colour": {"type": "string"}},
        "required": ["colour"],
        "additionalProperties": False,
    }
    answer = invoke(weir, input="Which?", config={"output_schema": schema})
    assert json.loads(output(answer)) == {"colour": "blue"}
    first = asked_of(models)[0].body
    assert first["response_format"]["json_schema"]["schema"] == schema
    assert len(asked_of(models)) == 2  # the first answer was none
    wrong = invoke(weir, input="Which?", config={"output_schema": {"type": "objekt"}})
    assert refusal(wrong).startswith("config.output_schema: ")


# --- Nimi ------------------------------------------------------------------------------------

CONNECTOR = {
    "connectors": [{"id": "house", "provider": "house"}],
    "nimi": {"allow_loopback_provider_endpoint": True, "probe_interval": "0s"},
}
CLOUD = {
    "route_policy": common.ROUTE_POLICY_CLOUD,
    "connector_id": "house",
    "subject_user_id": "anna",
}


def text(words):
    return pb.ChatContentPart(type=pb.CHAT_CONTENT_PART_TYPE_TEXT, text=words)


def said(role, words):
    """As upstream's SDK has it: in content, and as a part."""
    return pb.ChatMessage(role=role, content=words, parts=[text(words)])


CHAT = [
    ("user", "My name is Ada."),
    ("assistant", "Hello Ada."),
    ("user", "What is 2+2?"),
    ("assistant", "4"),
    ("user", "And my name?"),
]


def ask_nimi(client, model, messages, system="You lead."):
    spec = pb.TextGenerateScenarioSpec(input=messages, system_prompt=system)
    asked = nimi.request(spec=pb.ScenarioSpec(text_generate=spec), model_id=model, **CLOUD)
    return client.stream(asked=asked)


def test_a_chat_over_nimi_is_shown_as_it_was_sent(house, models, kind):
    client = nimi.Client(house(**CONNECTOR))
    models.say(house.model, "Ada.", "Ada.")
    answer = ask_nimi(client, house.model, [said(*message) for message in CHAT])
    assert answer.text == "Ada." and answer.kinds[-1] == "completed"
    assert told(kind, asked_of(models)[-1]) == CHAT
    plain = [pb.ChatMessage(role=role, content=words) for role, words in CHAT]
    plain[0].role = ""  # nobody's words are a user's
    ask_nimi(client, house.model, plain)
    assert told(kind, asked_of(models)[-1]) == CHAT


def test_a_chat_of_grpc_js_is_shown_as_it_was_sent(house, models, kind):
    weir = house(**CONNECTOR)
    models.say(house.model, "Ada.")
    environment = {
        **os.environ,
        "WEIR_NIMI": f"127.0.0.1:{weir.ports['nimi_grpc']}",
        "WEIR_PROTO": str(harness.ROOT / "proto"),
        "WEIR_CHAT": json.dumps({"model": house.model, "messages": CHAT}),
    }
    script = [shutil.which("node"), "nimi_chat.js"]
    ran = subprocess.run(
        script, cwd=vendors.NODE, env=environment, capture_output=True, text=True, timeout=60
    )
    assert (ran.stdout, ran.returncode) == ("Ada.", 0), ran.stderr
    assert told(kind, asked_of(models)[-1]) == CHAT


def image(url):
    return pb.ChatContentPart(
        type=pb.CHAT_CONTENT_PART_TYPE_IMAGE_URL, image_url=pb.ChatContentImageURL(url=url)
    )


def artifact(name):
    return pb.ChatContentPart(
        type=pb.CHAT_CONTENT_PART_TYPE_ARTIFACT_REF,
        artifact_ref=pb.ChatContentArtifactRef(artifact_id=name),
    )


def upload(client, data, subject="anna", mime_type="image/png"):
    metadata = pb.UploadArtifactMetadata(
        app_id=nimi.APP, subject_user_id=subject, mime_type=mime_type
    )
    chunk = pb.UploadArtifactChunk(sequence=0, bytes=data)
    sent = [pb.UploadArtifactRequest(metadata=metadata), pb.UploadArtifactRequest(chunk=chunk)]
    return client.ai.UploadArtifact(iter(sent), timeout=nimi.PATIENCE).artifact.artifact_id


def shown_pictures(*parts):
    return pb.ChatMessage(role="user", content="What?", parts=[text("What?"), *parts])


def test_pictures_over_nimi_reach_the_model(house, models, kind):
    client = nimi.Client(house(**CONNECTOR))
    models.say(house.model, "a cat", "a cat")
    data = base64.b64decode(PNG)
    own, shared = upload(client, data), upload(client, data, subject="")
    parts = [image(DATA_URL), image(WEB_URL), artifact(own), artifact(shared), artifact(own)]
    answer = ask_nimi(client, house.model, [shown_pictures(*parts)])
    assert answer.text == "a cat"
    assert told(kind, asked_of(models)[-1]) == [
        ("user", "What?"),
        ("user", ("image", DATA_URL)),
        ("user", ("image", WEB_URL)),
        *[("user", ("image", DATA_URL))] * 3,
    ]


@pytest.mark.parametrize("kind", ["anthropic"], indirect=True)
def test_pictures_that_cannot_be_shown_are_refused_over_nimi(house, models, kind):
    client = nimi.Client(house(**CONNECTOR))
    models.say(house.model, "unheard")
    theirs = upload(client, b"x", subject="bob")
    sound = upload(client, b"x", mime_type="audio/wav")
    for part, reason in [
        (artifact("upload_none"), "AI_INPUT_INVALID"),
        (artifact(theirs), "AI_INPUT_INVALID"),
        (artifact(sound), "AI_MODALITY_NOT_SUPPORTED"),
        (pb.ChatContentPart(audio_url=WEB_URL), "AI_MODALITY_NOT_SUPPORTED"),
        (image("ftp://x"), "AI_INPUT_INVALID"),
    ]:
        answer = ask_nimi(client, house.model, [shown_pictures(part)])
        assert answer.error and answer.error.reason == reason and not answer.events
    # what only the model's vendor does not take is known when it is asked
    tiff = upload(client, b"x", mime_type="image/tiff")
    answer = ask_nimi(client, house.model, [shown_pictures(artifact(tiff))])
    assert answer.last.failed.reason_code == common.AI_MODALITY_NOT_SUPPORTED
    assert "messages[0].content[1]: " in answer.last.failed.action_hint
    assert not asked_of(models)


@pytest.mark.parametrize("kind", ["openai"], indirect=True)
def test_a_job_shows_pictures_too(house, models, kind):
    client = nimi.Client(house(**CONNECTOR))
    models.say(house.model, "a cat")
    own = upload(client, base64.b64decode(PNG))
    spec = pb.TextGenerateScenarioSpec(
        input=[shown_pictures(artifact(own))], system_prompt="You lead."
    )
    submitted = pb.SubmitScenarioJobRequest(
        head=nimi.head(model_id=house.model, **CLOUD),
        scenario_type=pb.SCENARIO_TYPE_TEXT_GENERATE,
        execution_mode=pb.EXECUTION_MODE_ASYNC_JOB,
        spec=pb.ScenarioSpec(text_generate=spec),
    )
    job = client.ask(client.ai.SubmitScenarioJob, submitted)[0].job
    watch = pb.SubscribeScenarioJobEventsRequest(job_id=job.job_id)
    list(client.ai.SubscribeScenarioJobEvents(watch, metadata=client.metadata(), timeout=20))
    assert told(kind, asked_of(models)[-1])[1] == ("user", ("image", DATA_URL))


# --- instructions -----------------------------------------------------------------------------


def responses_turn(http, text, instructions, before):
    body = {"input": text, "instructions": instructions}
    body |= {"previous_response_id": before["id"]} if before else {}
    return http.post("/v1/responses", json=body)


def responses_session(http, text, instructions, before):
    body = {"input": text, "instructions": instructions}
    return http.post("/v1/responses", json=body, headers={"x-session-id": "s"})


def messages_session(http, text, instructions, before):
    body = {"model": "manager", "max_tokens": 9, "system": instructions}
    body["messages"] = [{"role": "user", "content": text}]
    return http.post("/v1/messages", json=body, headers={"x-session-id": "s"})


@pytest.mark.parametrize("door", [responses_turn, responses_session, messages_session])
def test_instructions_of_a_request_hold_for_its_turn_alone(house, models, kind, door):
    weir = house()
    before = None
    for number, restart in (("one", False), ("two", False), ("three", True), ("four", False)):
        models.say(house.model, number)
        if restart:
            weir.restart()
        with weir.http(headers=harness.bearer()) as http:
            answer = door(http, f"say {number}", f"It is {number} o'clock.", before)
        assert answer.status_code == 200, answer.text
        before = answer.json()
        prompt = prompts.of(kind, models.asked[-1].body)
        assert prompt.system.count("o'clock") == 1 and f"It is {number} o'clock." in prompt.system
    said = [text for _, text in prompt.texts]
    assert said == ["say one", "one", "say two", "two", "say three", "three", "say four"]


@pytest.mark.parametrize("kind", ["anthropic"], indirect=True)
def test_instructions_that_come_with_the_whole_list_are_the_new_ones(house, models, kind):
    weir = house()
    messages = []
    for number in ("one", "two"):
        models.say(house.model, number)
        messages.append({"role": "user", "content": f"say {number}"})
        body = {"model": "manager", "max_tokens": 9, "system": f"It is {number} o'clock.", "messages": messages}
        with weir.http(headers={"x-session-id": "s", **harness.bearer()}) as http:
            assert http.post("/v1/messages", json=body).status_code == 200
        messages.append({"role": "assistant", "content": number})
    prompt = prompts.of(kind, models.asked[-1].body)
    assert "It is two o'clock." in prompt.system and "one o'clock" not in prompt.system
    assert [text for _, text in prompt.texts] == ["say one", "one", "say two"]
