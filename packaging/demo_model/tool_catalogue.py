# ruff: noqa: E501 - lists of phrases read best as long lines and split strings
"""The made-up tools: their names, parameters, requests, results and what is said about the results."""

from __future__ import annotations

from dataclasses import dataclass


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
    Tool(
        "get_weather|weather|current_weather|get_current_weather|weather_lookup|get_forecast",
        "Get the current weather for a city",
        "city|location|place:city",
        "What is the weather in {0}?|What's the weather like in {0}?|How is the weather in {0}?|weather in {0}"
        "|Is it raining in {0}?|How warm is it in {0}?|Tell me the weather in {0}.|What is the weather in {0} today?"
        "|whats the weather in {0}|Do I need an umbrella in {0}?|Check the weather in {0}|temperature in {0}",
        "temperature:int|condition:sky",
        "In {0} it is {condition}, with {temperature} degrees.",
    ),
    Tool(
        "get_time|current_time|get_current_time|time_in|clock",
        "Get the current time in a city",
        "city|timezone|location:city",
        "What time is it in {0}?|What's the time in {0}?|Tell me the time in {0}.|current time in {0}"
        "|How late is it in {0}?|time in {0}",
        "time:time",
        "It is {time} in {0}.",
    ),
    Tool(
        "add|sum|add_numbers|plus",
        "Add two numbers",
        "a|x|first:number,b|y|second:number",
        "What is {0} plus {1}?|Add {0} and {1}.|{0} + {1}|What is {0} + {1}?|Calculate {0} + {1}|sum of {0} and {1}"
        "|Please add {0} to {1}.|Use the tool to add {0} and {1}.",
        "result:number",
        "The result is {result}.",
    ),
    Tool(
        "multiply|product|times|multiply_numbers",
        "Multiply two numbers",
        "a|x|first:number,b|y|second:number",
        "What is {0} times {1}?|Multiply {0} by {1}.|{0} * {1}|Calculate {0} * {1}|product of {0} and {1}",
        "result:number",
        "The result is {result}.",
    ),
    Tool(
        "subtract|minus|difference",
        "Subtract the second number from the first",
        "a|x|first:number,b|y|second:number",
        "What is {0} minus {1}?|{0} - {1}|Calculate {0} - {1}|Subtract: {0} minus {1}",
        "result:number",
        "The result is {result}.",
    ),
    Tool(
        "calculate|calculator|evaluate|eval_expression|math",
        "Evaluate an arithmetic expression",
        "expression|formula:sum",
        "Calculate {0}|What is {0}?|How much is {0}?|Evaluate {0}|compute {0}|{0}",
        "result:number",
        "The result is {result}.",
    ),
    Tool(
        "search|web_search|search_web|find|lookup",
        "Search the web",
        "query|q|text:query",
        "Search for {0}|Search the web for {0}.|Find {0}|Look up {0}.|Google {0}|Can you search for {0}?"
        "|Find information about {0}.|search {0}|I want to know more about {0}. Please search for it.",
        "title:text|url:url",
        "I found “{title}” at {url}.",
    ),
    Tool(
        "read_file|open_file|get_file|cat|load_file",
        "Read a text file",
        "path|file|filename:path",
        "Read the file {0}|Read {0}.|Open {0}|Show me the contents of {0}|What is in {0}?|What does {0} say?"
        "|cat {0}|Please read {0} for me.|Show {0}",
        "content:text",
        "The file {0} says: {content}",
    ),
    Tool(
        "write_file|save_file|create_file",
        "Write text to a file",
        "path|file:path,content|text:text",
        'Write "{1}" to {0}|Save the text "{1}" in {0}.|Create {0} with the content "{1}".|Write to {0}: {1}',
        "status:ok",
        "I wrote the text to {0}.",
    ),
    Tool(
        "list_files|list_directory|ls|list_dir",
        "List the files of a folder",
        "path|folder|directory:folder",
        "List the files in {0}|What files are in {0}?|ls {0}|Show me the folder {0}|Which files are in {0}?",
        "files:text",
        "The folder {0} holds: {files}.",
    ),
    Tool(
        "delete_file|remove_file",
        "Delete a file",
        "path|file:path",
        "Delete {0}|Remove the file {0}.|rm {0}",
        "status:ok",
        "The file {0} is deleted.",
    ),
    Tool(
        "send_email|email|mail|send_mail",
        "Send an email",
        "to|recipient:email,subject:text",
        "Send an email to {0} about {1}|Write a mail to {0} with the subject {1}.|Email {0}, subject {1}",
        "status:ok",
        "I sent the email to {0}.",
    ),
    Tool(
        "send_message|message|text_person",
        "Send a message to a person",
        "to|person|name:person,text|message:text",
        "Tell {0}: {1}|Send {0} the message {1}|Message {0} that {1}",
        "status:ok",
        "I sent the message to {0}.",
    ),
    Tool(
        "translate|translate_text",
        "Translate a text",
        "text:text,language|target:language",
        'Translate "{0}" into {1}|How do you say "{0}" in {1}?|What is "{0}" in {1}?',
        "translation:text",
        "In {1} it is: {translation}.",
    ),
    Tool(
        "convert_currency|exchange|currency",
        "Convert an amount between currencies",
        "amount:number,from|source|from_currency:currency,to|target|to_currency:currency",
        "Convert {0} {1} to {2}|How much is {0} {1} in {2}?|{0} {1} in {2}|Exchange {0} {1} into {2}.",
        "result:number",
        "{0} {1} is {result} {2}.",
    ),
    Tool(
        "get_stock_price|stock_price|quote",
        "Get the price of a stock",
        "symbol|ticker:code",
        "What is the price of {0}?|How is {0} doing?|Stock price of {0}|Get the quote for {0}.",
        "price:number|currency:currency",
        "{0} costs {price} {currency}.",
    ),
    Tool(
        "create_event|add_event|schedule_meeting|calendar_add",
        "Add an event to the calendar",
        "title|name:text,date|day:date,time|start:time",
        "Add {0} to my calendar on {1} at {2}|Schedule {0} for {1} at {2}.|Plan {0} on {1}, {2}",
        "status:ok",
        "I added {0} on {1} at {2}.",
    ),
    Tool(
        "set_timer|timer|start_timer",
        "Set a timer in minutes",
        "minutes|duration:int",
        "Set a timer for {0} minutes|Wake me in {0} minutes.|Timer {0} minutes|Start a timer of {0} minutes",
        "status:ok",
        "The timer runs for {0} minutes.",
    ),
    Tool(
        "set_alarm|alarm|wake_me",
        "Set an alarm",
        "time|at:time",
        "Set an alarm for {0}|Wake me at {0}.|Alarm at {0}",
        "status:ok",
        "The alarm is set for {0}.",
    ),
    Tool(
        "get_user|find_user|user_info|lookup_user",
        "Look up a user by name",
        "name|user|username:person",
        "Who is {0}?|Find the user {0}.|Look up {0}|What do you know about {0}?|user {0}",
        "email:email|id:int",
        "{0} has the number {id} and the address {email}.",
    ),
    Tool(
        "get_order|order_status|track_order|track_package",
        "Get the status of an order",
        "order_id|id|number:code",
        "Where is my order {0}?|What is the status of order {0}?|Track {0}|Has {0} been sent?",
        "status:word|date:date",
        "Order {0}: {status}, {date}.",
    ),
    Tool(
        "book_flight|find_flights|search_flights",
        "Find flights",
        "origin|from:city,destination|to:city,date:date",
        "Find a flight from {0} to {1} on {2}|Flights from {0} to {1}, {2}|I want to fly from {0} to {1} on {2}.",
        "flight:code|price:int",
        "Flight {flight} from {0} to {1} costs {price}.",
    ),
    Tool(
        "find_hotel|search_hotels|book_hotel",
        "Find a hotel",
        "city|place:city,nights:int",
        "Find a hotel in {0} for {1} nights|I need a room in {0} for {1} nights.|Hotel in {0}, {1} nights",
        "hotel:word|price:int",
        "The hotel {hotel} in {0} costs {price}.",
    ),
    Tool(
        "fetch_url|http_get|download|open_url|fetch",
        "Fetch a web page",
        "url|address:url",
        "Open {0}|Fetch {0}.|Download {0}|What is on {0}?|Get the page {0}",
        "title:text",
        "The page {0} has the title “{title}”.",
    ),
    Tool(
        "run_command|shell|execute|bash",
        "Run a shell command",
        "command|cmd:command",
        "Run {0}|Execute {0}.|Run the command {0}|Please run `{0}`.",
        "output:text",
        "The output is: {output}",
    ),
    Tool(
        "run_python|python|execute_code",
        "Run Python code",
        "code|source:expression",
        "Run {0}|Run this Python code: {0}|Execute {0} in Python|What does {0} give?",
        "output:number",
        "The output is {output}.",
    ),
    Tool(
        "get_definition|define|dictionary",
        "Look up the meaning of a word",
        "word|term:word",
        "Define {0}|What does the word {0} mean?|Look up the word {0}.|meaning of {0}",
        "definition:text",
        "{0} means: {definition}.",
    ),
    Tool(
        "play_music|play_song|play",
        "Play a song",
        "title|song|name:text",
        "Play {0}|Play the song {0}.|I want to hear {0}",
        "status:ok",
        "Now playing {0}.",
    ),
    Tool(
        "turn_on|switch_on|light_on",
        "Turn a device on",
        "device|name:word",
        "Turn on the {0}|Switch on the {0}.|{0} on",
        "status:ok",
        "The {0} is on.",
    ),
    Tool(
        "roll_dice|dice|roll|random_number",
        "Get a random number up to a maximum",
        "maximum|sides|max:int",
        "Roll a dice with {0} sides|Give me a random number up to {0}.|Random number from 1 to {0}",
        "result:int",
        "The number is {result}.",
    ),
    Tool(
        "get_distance|distance|route|directions",
        "Get the distance between two places",
        "origin|from|start:city,destination|to|end:city",
        "How far is it from {0} to {1}?|Distance between {0} and {1}|How do I get from {0} to {1}?",
        "kilometers:int",
        "It is {kilometers} kilometers from {0} to {1}.",
    ),
    Tool(
        "create_note|add_note|note|remember",
        "Save a note",
        "text|content|note:text",
        "Note: {0}|Remember {0}|Make a note: {0}|Write down {0}.",
        "status:ok",
        "I noted: {0}.",
    ),
    Tool(
        "add_todo|create_task|add_task|todo",
        "Add a task to the list",
        "task|title|item:text",
        "Add {0} to my list|Put {0} on my to-do list.|New task: {0}|todo {0}",
        "status:ok",
        "I added {0}.",
    ),
    Tool(
        "get_population|population|country_info",
        "Get the population of a place",
        "place|country|city:city",
        "How many people live in {0}?|Population of {0}|What is the population of {0}?",
        "population:int",
        "{0} has {population} inhabitants.",
    ),
    Tool(
        "list_models|models|get_models",
        "List the models on this computer",
        "folder|path:folder",
        "Which models are in {0}?|List the models in {0}.",
        "models:text",
        "The models in {0} are: {models}.",
    ),
)
