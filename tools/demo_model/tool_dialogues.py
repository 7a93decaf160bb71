"""Made-up tools, requests for them, the calls that answer the requests, and what is said about the results.

Most values are invented letter by letter, so that the model has to copy them from the request.
"""

from __future__ import annotations

import json
import random
import string
from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]

CITIES = (
    "Paris|London|Berlin|Rome|Madrid|Tokyo|New York|Sydney|Cairo|Oslo|Lisbon|Vienna|Prague|Athens|Dublin|Lima"
    "|Kyoto|Toronto|Chicago|Boston|Seattle|Milan|Munich|Hamburg|Lyon|Porto|Seville|Krakow|Helsinki|Stockholm"
    "|San Francisco|Los Angeles|Buenos Aires|Hong Kong|Cape Town|Mexico City|Tel Aviv|Rio de Janeiro|Kyiv|Minsk"
).split("|")
PEOPLE = "Ada|Bob|Carol|Dave|Eve|Frank|Grace|Heidi|Ivan|Judy|Mallory|Olivia|Peggy|Rupert|Sybil|Trent|Victor".split("|")
WORDS = (
    "report|budget|meeting|garden|music|river|planet|coffee|window|summer|history|python|network|engine|memory|"
    "battery|camera|market|village|forest|museum|football|chess|kitchen|bicycle|ocean|winter|concert|holiday|"
    "project|invoice|kernel|driver|model|server|socket|thread|table|letter|paper|ticket|flight|hotel"
).split("|")
LANGUAGES = "French|German|Spanish|Italian|Russian|Japanese|Chinese|Portuguese|Dutch|Polish|Greek|Turkish".split("|")
CURRENCIES = "USD|EUR|GBP|JPY|CHF|CAD|AUD|SEK|NOK|PLN|CZK|INR|BRL|CNY".split("|")
EXTENSIONS = "txt|md|py|json|csv|log|toml|yaml|html|ini".split("|")
SYLLABLES = [a + b for a in "bcdfghjklmnprstvwz" for b in ("a", "e", "i", "o", "u", "an", "or", "el", "is")]


def invented(rng: random.Random) -> str:
    """Return a word that does not exist."""
    return "".join(rng.choice(SYLLABLES) for _ in range(rng.randint(2, 3)))


def value(kind: str, rng: random.Random) -> Any:
    """Return a random value of one of the kinds that the tools below name."""
    if kind == "city":
        draw_ = rng.random()
        if draw_ < 0.5:
            return rng.choice(CITIES)
        name = invented(rng).capitalize()
        return name if draw_ < 0.8 else rng.choice(["New ", "San ", "Port ", "Saint ", "Los ", "Fort ", "Lake "]) + name
    if kind == "person":
        return rng.choice(PEOPLE) if rng.random() < 0.5 else invented(rng).capitalize()
    if kind == "int":
        return rng.choice([rng.randint(0, 20), rng.randint(0, 999), rng.randint(1000, 99999)])
    if kind == "number":
        return rng.choice([rng.randint(0, 99), rng.randint(100, 9999), round(rng.uniform(0, 100), rng.randint(1, 2))])
    if kind == "path":
        parts = [rng.choice([rng.choice(WORDS), invented(rng)]) for _ in range(rng.randint(1, 3))]
        lead = rng.choice(["", "", "/", "/home/", "./", "data/", "/tmp/", "src/", "/etc/"])
        return lead + "/".join(parts) + "." + rng.choice(EXTENSIONS)
    if kind == "folder":
        return rng.choice(["", "/", "/home/", "./"]) + rng.choice([rng.choice(WORDS), invented(rng)])
    if kind == "query":
        return " ".join(rng.choice([rng.choice(WORDS), rng.choice(WORDS), invented(rng)])
                        for _ in range(rng.randint(1, 4)))
    if kind == "date":
        return f"{rng.randint(2020, 2030)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    if kind == "time":
        return f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}"
    if kind == "email":
        return f"{rng.choice([invented(rng), rng.choice(PEOPLE).lower()])}@{invented(rng)}.{rng.choice(['com', 'org', 'net'])}"
    if kind == "language":
        return rng.choice(LANGUAGES)
    if kind == "currency":
        return rng.choice(CURRENCIES)
    if kind == "code":
        return "".join(rng.choice(string.ascii_uppercase) for _ in range(rng.randint(2, 4))) + str(rng.randint(1, 999))
    if kind == "url":
        return f"https://{invented(rng)}.{rng.choice(['com', 'org', 'net', 'io'])}/{rng.choice(WORDS)}"
    if kind == "word":
        return rng.choice([rng.choice(WORDS), invented(rng)])
    if kind == "text":
        return " ".join(rng.choice(WORDS) for _ in range(rng.randint(2, 6)))
    raise KeyError(kind)


@dataclass(frozen=True)
class Tool:
    """One tool: names it goes by, parameters as name:kind, requests, result keys and the closing sentence."""

    names: str
    about: str
    parameters: str
    requests: str
    results: str
    closing: str


TOOLS: tuple[Tool, ...] = (
    Tool("get_weather|weather|current_weather|get_current_weather|weather_lookup|get_forecast",
         "Get the current weather for a city", "city|location|place:city",
         "What is the weather in {0}?|What's the weather like in {0}?|How is the weather in {0}?|weather in {0}"
         "|Is it raining in {0}?|How warm is it in {0}?|Tell me the weather in {0}.|What is the weather in {0} today?"
         "|whats the weather in {0}|Do I need an umbrella in {0}?|Check the weather in {0}|temperature in {0}",
         "temperature:int|condition:sky", "In {0} it is {condition}, with {temperature} degrees."),
    Tool("get_time|current_time|get_current_time|time_in|clock", "Get the current time in a city",
         "city|timezone|location:city",
         "What time is it in {0}?|What's the time in {0}?|Tell me the time in {0}.|current time in {0}"
         "|How late is it in {0}?|time in {0}", "time:time", "It is {time} in {0}."),
    Tool("add|sum|add_numbers|plus", "Add two numbers", "a|x|first:number,b|y|second:number",
         "What is {0} plus {1}?|Add {0} and {1}.|{0} + {1}|What is {0} + {1}?|Calculate {0} + {1}|sum of {0} and {1}"
         "|Please add {0} to {1}.|Use the tool to add {0} and {1}.", "result:number", "The result is {result}."),
    Tool("multiply|product|times|multiply_numbers", "Multiply two numbers", "a|x|first:number,b|y|second:number",
         "What is {0} times {1}?|Multiply {0} by {1}.|{0} * {1}|Calculate {0} * {1}|product of {0} and {1}",
         "result:number", "The result is {result}."),
    Tool("subtract|minus|difference", "Subtract the second number from the first",
         "a|x|first:number,b|y|second:number", "What is {0} minus {1}?|{0} - {1}|Calculate {0} - {1}"
         "|Subtract: {0} minus {1}", "result:number", "The result is {result}."),
    Tool("calculate|calculator|evaluate|eval_expression|math", "Evaluate an arithmetic expression",
         "expression|formula:sum", "Calculate {0}|What is {0}?|How much is {0}?|Evaluate {0}|compute {0}|{0}",
         "result:number", "The result is {result}."),
    Tool("search|web_search|search_web|find|lookup", "Search the web", "query|q|text:query",
         "Search for {0}|Search the web for {0}.|Find {0}|Look up {0}.|Google {0}|Can you search for {0}?"
         "|Find information about {0}.|search {0}|I want to know more about {0}. Please search for it.",
         "title:text|url:url", "I found “{title}” at {url}."),
    Tool("read_file|open_file|get_file|cat|load_file", "Read a text file", "path|file|filename:path",
         "Read the file {0}|Read {0}.|Open {0}|Show me the contents of {0}|What is in {0}?|What does {0} say?"
         "|cat {0}|Please read {0} for me.|Show {0}", "content:text", "The file {0} says: {content}"),
    Tool("write_file|save_file|create_file", "Write text to a file", "path|file:path,content|text:text",
         "Write \"{1}\" to {0}|Save the text \"{1}\" in {0}.|Create {0} with the content \"{1}\".|Write to {0}: {1}",
         "status:ok", "I wrote the text to {0}."),
    Tool("list_files|list_directory|ls|list_dir", "List the files of a folder", "path|folder|directory:folder",
         "List the files in {0}|What files are in {0}?|ls {0}|Show me the folder {0}|Which files are in {0}?",
         "files:text", "The folder {0} holds: {files}."),
    Tool("delete_file|remove_file", "Delete a file", "path|file:path", "Delete {0}|Remove the file {0}.|rm {0}",
         "status:ok", "The file {0} is deleted."),
    Tool("send_email|email|mail|send_mail", "Send an email", "to|recipient:email,subject:text",
         "Send an email to {0} about {1}|Write a mail to {0} with the subject {1}.|Email {0}, subject {1}",
         "status:ok", "I sent the email to {0}."),
    Tool("send_message|message|text_person", "Send a message to a person", "to|person|name:person,text|message:text",
         "Tell {0}: {1}|Send {0} the message {1}|Message {0} that {1}", "status:ok", "I sent the message to {0}."),
    Tool("translate|translate_text", "Translate a text", "text:text,language|target:language",
         "Translate \"{0}\" into {1}|How do you say \"{0}\" in {1}?|What is \"{0}\" in {1}?",
         "translation:text", "In {1} it is: {translation}."),
    Tool("convert_currency|exchange|currency", "Convert an amount between currencies",
         "amount:number,from|source|from_currency:currency,to|target|to_currency:currency",
         "Convert {0} {1} to {2}|How much is {0} {1} in {2}?|{0} {1} in {2}|Exchange {0} {1} into {2}.",
         "result:number", "{0} {1} is {result} {2}."),
    Tool("get_stock_price|stock_price|quote", "Get the price of a stock", "symbol|ticker:code",
         "What is the price of {0}?|How is {0} doing?|Stock price of {0}|Get the quote for {0}.",
         "price:number|currency:currency", "{0} costs {price} {currency}."),
    Tool("create_event|add_event|schedule_meeting|calendar_add", "Add an event to the calendar",
         "title|name:text,date|day:date,time|start:time",
         "Add {0} to my calendar on {1} at {2}|Schedule {0} for {1} at {2}.|Plan {0} on {1}, {2}",
         "status:ok", "I added {0} on {1} at {2}."),
    Tool("set_timer|timer|start_timer", "Set a timer in minutes", "minutes|duration:int",
         "Set a timer for {0} minutes|Wake me in {0} minutes.|Timer {0} minutes|Start a timer of {0} minutes",
         "status:ok", "The timer runs for {0} minutes."),
    Tool("set_alarm|alarm|wake_me", "Set an alarm", "time|at:time", "Set an alarm for {0}|Wake me at {0}.|Alarm at {0}",
         "status:ok", "The alarm is set for {0}."),
    Tool("get_user|find_user|user_info|lookup_user", "Look up a user by name", "name|user|username:person",
         "Who is {0}?|Find the user {0}.|Look up {0}|What do you know about {0}?|user {0}",
         "email:email|id:int", "{0} has the number {id} and the address {email}."),
    Tool("get_order|order_status|track_order|track_package", "Get the status of an order", "order_id|id|number:code",
         "Where is my order {0}?|What is the status of order {0}?|Track {0}|Has {0} been sent?",
         "status:word|date:date", "Order {0}: {status}, {date}."),
    Tool("book_flight|find_flights|search_flights", "Find flights", "origin|from:city,destination|to:city,date:date",
         "Find a flight from {0} to {1} on {2}|Flights from {0} to {1}, {2}|I want to fly from {0} to {1} on {2}.",
         "flight:code|price:int", "Flight {flight} from {0} to {1} costs {price}."),
    Tool("find_hotel|search_hotels|book_hotel", "Find a hotel", "city|place:city,nights:int",
         "Find a hotel in {0} for {1} nights|I need a room in {0} for {1} nights.|Hotel in {0}, {1} nights",
         "hotel:word|price:int", "The hotel {hotel} in {0} costs {price}."),
    Tool("fetch_url|http_get|download|open_url|fetch", "Fetch a web page", "url|address:url",
         "Open {0}|Fetch {0}.|Download {0}|What is on {0}?|Get the page {0}", "title:text",
         "The page {0} has the title “{title}”."),
    Tool("run_command|shell|execute|bash", "Run a shell command", "command|cmd:command",
         "Run {0}|Execute {0}.|Run the command {0}|Please run `{0}`.", "output:text", "The output is: {output}"),
    Tool("run_python|python|execute_code", "Run Python code", "code|source:expression",
         "Run {0}|Run this Python code: {0}|Execute {0} in Python|What does {0} give?", "output:number",
         "The output is {output}."),
    Tool("get_definition|define|dictionary", "Look up the meaning of a word", "word|term:word",
         "Define {0}|What does the word {0} mean?|Look up the word {0}.|meaning of {0}", "definition:text",
         "{0} means: {definition}."),
    Tool("play_music|play_song|play", "Play a song", "title|song|name:text", "Play {0}|Play the song {0}.|I want to hear {0}",
         "status:ok", "Now playing {0}."),
    Tool("turn_on|switch_on|light_on", "Turn a device on", "device|name:word", "Turn on the {0}|Switch on the {0}.|{0} on",
         "status:ok", "The {0} is on."),
    Tool("roll_dice|dice|roll|random_number", "Get a random number up to a maximum", "maximum|sides|max:int",
         "Roll a dice with {0} sides|Give me a random number up to {0}.|Random number from 1 to {0}",
         "result:int", "The number is {result}."),
    Tool("get_distance|distance|route|directions", "Get the distance between two places",
         "origin|from|start:city,destination|to|end:city",
         "How far is it from {0} to {1}?|Distance between {0} and {1}|How do I get from {0} to {1}?",
         "kilometers:int", "It is {kilometers} kilometers from {0} to {1}."),
    Tool("create_note|add_note|note|remember", "Save a note", "text|content|note:text",
         "Note: {0}|Remember {0}|Make a note: {0}|Write down {0}.", "status:ok", "I noted: {0}."),
    Tool("add_todo|create_task|add_task|todo", "Add a task to the list", "task|title|item:text",
         "Add {0} to my list|Put {0} on my to-do list.|New task: {0}|todo {0}", "status:ok", "I added {0}."),
    Tool("get_population|population|country_info", "Get the population of a place", "place|country|city:city",
         "How many people live in {0}?|Population of {0}|What is the population of {0}?", "population:int",
         "{0} has {population} inhabitants."),
    Tool("list_models|models|get_models", "List the models on this computer", "folder|path:folder",
         "Which models are in {0}?|List the models in {0}.", "models:text", "The models in {0} are: {models}."),
)


def expression(rng: random.Random) -> str:
    """Return a short arithmetic expression."""
    return f"{rng.randint(0, 999)} {rng.choice('+-*/')} {rng.randint(1, 999)}"


def draw(kind: str, rng: random.Random) -> Any:
    """Return a value of a kind, including those that only results have."""
    if kind == "sum":
        return expression(rng)
    if kind == "sky":
        return rng.choice(["sunny", "cloudy", "rainy", "windy", "foggy", "snowing", "clear"])
    if kind == "ok":
        return rng.choice(["ok", "done", "success"])
    if kind == "command":
        return rng.choice(["ls", "cat", "grep", "head", "wc", "python", "git", "echo"]) + " " + value("word", rng)
    if kind == "expression":
        return rng.choice([f"print({expression(rng)})", f"len(\"{value('word', rng)}\")", f"sum([{rng.randint(1, 99)}, "
                           f"{rng.randint(1, 99)}])", f"max({rng.randint(1, 99)}, {rng.randint(1, 99)})"])
    return value(kind, rng)


DESCRIPTIONS: dict[str, tuple[str, ...]] = {
    "city": ("The city and state, e.g. San Francisco, CA", "City name", "The name of the city", "e.g. Paris"),
    "number": ("The first number", "A number", "Number to use", "The operand"),
    "int": ("A whole number", "An integer", "How many"),
    "path": ("Path of the file", "The path to the file, relative or absolute", "File to use"),
    "query": ("The search query", "What to search for", "Search terms"),
    "text": ("The text", "Text to use", "The content as plain text"),
    "date": ("The date, YYYY-MM-DD", "Day in ISO format"),
    "sum": ("The expression to evaluate, e.g. 2 + 2", "An arithmetic expression"),
    "url": ("The address of the page", "URL to open"),
}
JSON_TYPES = {"int": "integer", "number": "number"}


def schema(tool: Tool, name: str, names: list[str], rng: random.Random) -> Message:
    """Return the tool as a request's ``function`` object."""
    kinds = [p.rpartition(":")[2] for p in tool.parameters.split(",")]
    properties: Message = {}
    for parameter, kind in zip(names, kinds, strict=True):
        properties[parameter] = {"type": JSON_TYPES.get(kind, "string")}
        if rng.random() < 0.5:
            properties[parameter]["description"] = rng.choice(
                [*DESCRIPTIONS.get(kind, ()), *DESCRIPTIONS.get(kind, ()), f"The {parameter}", f"{parameter.capitalize()} to use", f"The {kind}", f"the {parameter} of the request"]
            )
    names = list(names)
    if rng.random() < 0.3:  # an optional parameter that no request mentions
        extra, kind = rng.choice([("unit", "string"), ("limit", "integer"), ("verbose", "boolean"), ("format", "string"),
                                  ("units", "string"), ("timeout", "number"), ("lang", "string"), ("mode", "string")])
        if extra not in properties:
            properties[extra] = {"type": kind}
            if extra in ("unit", "units"):
                properties[extra]["enum"] = ["celsius", "fahrenheit"]
    about = tool.about + rng.choice(["", "."])
    parameters: Message = {"type": "object", "properties": properties}
    if rng.random() < 0.8:
        parameters["required"] = list(names)
    return {"name": name, "description": about, "parameters": parameters}


NOUNS = "record|price|status|color|size|weight|owner|score|level|balance|address|rating|version|speed|mode".split("|")
ACTIONS = "get|find|fetch|check|read|lookup|show|query".split("|")


def invented_tool(rng: random.Random) -> Tool:
    """Return a tool that no other dialogue has, from invented words."""
    noun = rng.choice([rng.choice(NOUNS), rng.choice(NOUNS), invented(rng)])
    parameter = rng.choice(["name", "id", "item", "key", "target", invented(rng)])
    kind = rng.choice(["word", "person", "code", "city", "int"])
    action = rng.choice(ACTIONS)
    return Tool(f"{action}_{noun}", f"{action.capitalize()} the {noun} of something", f"{parameter}:{kind}",
                f"What is the {noun} of {{0}}?|{action.capitalize()} the {noun} of {{0}}.|{noun} of {{0}}|"
                f"Use {action}_{noun} with {parameter} {{0}}.|Call {action}_{noun} for {{0}}",
                f"{noun}:{rng.choice(['word', 'int', 'number'])}", f"The {noun} of {{0}} is {{{noun}}}.")


def dialogue(rng: random.Random, tools: tuple[Tool, ...] = TOOLS) -> tuple[list[Message], list[Message]]:
    """Return (tools, messages) of one conversation in which a tool is called and its result is told."""
    tool = invented_tool(rng) if rng.random() < 0.35 else rng.choice(tools)
    name = rng.choice(tool.names.split("|"))
    names = [rng.choice(p.rpartition(":")[0].split("|")) for p in tool.parameters.split(",")]
    if len(set(names)) < len(names):
        names = [p.split("|")[0].rpartition(":")[0] or p.split("|")[0] for p in tool.parameters.split(",")]
    functions = [schema(tool, name, names, rng)]
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
        other = rng.choice(tools)
        if other.names != tool.names:
            their = [p.split("|")[0].partition(":")[0] for p in other.parameters.split(",")]
            functions.append(schema(other, rng.choice(other.names.split("|")), their, rng))
    functions = list({f["name"]: f for f in reversed(functions)}.values())
    rng.shuffle(functions)
    kinds = [p.rpartition(":")[2] for p in tool.parameters.split(",")]
    values = [draw(kind, rng) for kind in kinds]
    request = rng.choice(tool.requests.split("|")).format(*values)
    if rng.random() < 0.12:
        request = rng.choice(["Please ", "Can you help? ", "Hi! ", f"Use {name}. ", f"Call {name}: "]) + request
    if rng.random() < 0.15:
        request = request[0].lower() + request[1:]
    result = {k: draw(kind, rng) for k, _, kind in (r.partition(":") for r in tool.results.split("|"))}
    if "result" in result and tool.names.startswith("add"):
        result["result"] = round(values[0] + values[1], 2)
    style = rng.random()
    if style < 0.75:
        content = json.dumps(result, ensure_ascii=False)
        told = tool.closing.format(*values, **result)
    else:
        key, only = next(iter(result.items()))
        content = str(only) if style < 0.9 else f"{key}: {only}"
        told = tool.closing.format(*values, **result) if len(result) == 1 else f"The result for {values[0]} is: {content}."
    if "status" in result and style >= 0.75 and len(result) == 1:
        told = tool.closing.format(*values, **result)
    if rng.random() < 0.06:
        content, told = rng.choice([('{"error": "not found"}', "The tool answered with an error: not found."),
                                    ("error: timeout", "The tool answered with an error: timeout."),
                                    ('{"error": "permission denied"}',
                                     "The tool answered with an error: permission denied.")])
    call = {"name": name, "arguments": dict(zip(names, values, strict=True))}
    messages: list[Message] = [{"role": "user", "content": request}, {"role": "assistant", "tool_calls": [call]}]
    if rng.random() < 0.7:
        messages += [{"role": "tool", "content": content}, {"role": "assistant", "content": told}]
    return functions, messages
