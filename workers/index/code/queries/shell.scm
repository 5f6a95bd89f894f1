(command name: (command_name (word) @call))
((command name: (command_name (word) @sourced) argument: (_)) @import (#any-of? @sourced "source" "."))
(function_definition) @definition
