(call_expression function: [(identifier) (member_expression)] @call)
(new_expression constructor: [(identifier) (member_expression)] @call)
(decorator [(identifier) (member_expression)] @call)
(arguments (identifier) @value)
(pair value: (identifier) @value)
(array (identifier) @value)
(shorthand_property_identifier) @value
(variable_declarator name: (identifier) @name value: [(new_expression) (call_expression) (await_expression (call_expression))] @from)
(assignment_expression left: [(identifier) (member_expression)] @name right: [(new_expression) (call_expression) (identifier)] @from)
(variable_declarator value: (call_expression function: (identifier) @_require (#eq? @_require "require"))) @import
(variable_declarator value: (member_expression object: (call_expression function: (identifier) @_require)) (#eq? @_require "require")) @import
[(import_statement) (export_statement source: (string))] @import
(export_statement value: (identifier) @default)
(assignment_expression left: (member_expression) @_exports right: (identifier) @default (#eq? @_exports "module.exports"))
(export_statement "default" declaration: [(class_declaration name: (_) @default) (function_declaration name: (_) @default)])
[(function_declaration) (generator_function_declaration) (class_declaration) (method_definition)] @definition
(variable_declarator value: [(arrow_function) (function_expression) (generator_function) (class) (call_expression)]) @definition
(pair value: [(arrow_function) (function_expression) (generator_function)]) @definition
(assignment_expression right: [(arrow_function) (function_expression) (generator_function) (class) (call_expression)]) @definition
(export_statement value: [(arrow_function) (function_expression) (generator_function) (class) (call_expression)]) @definition
[(export_statement (decorator) @decorator) (class_declaration (decorator) @decorator)]
