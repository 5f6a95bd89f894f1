(call function: [(identifier) (attribute)] @call)
(decorator [(identifier) (attribute)] @call)
(class_definition superclasses: (argument_list [(identifier) (attribute) (subscript)] @base))
(type) @type
(argument_list (identifier) @value)
(keyword_argument value: (identifier) @value)
(pair value: (identifier) @value)
(list (identifier) @value)
(tuple (identifier) @value)
(assignment right: [(identifier) (attribute)] @value)
(default_parameter value: (identifier) @value)
(typed_default_parameter value: (identifier) @value)
(boolean_operator (identifier) @value)
(conditional_expression (identifier) @value)
(return_statement (identifier) @value)
(typed_parameter . (identifier) @name type: (type) @as)
(typed_default_parameter name: (identifier) @name type: (type) @as)
(assignment left: [(identifier) (attribute)] @name type: (type) @as)
(assignment left: [(identifier) (attribute)] @name right: [(call) (identifier) (attribute) (await (call))] @from)
(with_item value: (as_pattern (call) @from alias: (as_pattern_target (identifier) @name)))
(function_definition return_type: (type) @returns)
[(import_statement) (import_from_statement)] @import
[(function_definition) (class_definition)] @definition
(decorator) @decorator
